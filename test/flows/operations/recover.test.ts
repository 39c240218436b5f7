/** `svc admin recover`: an owner who lost the password and the second factor. */
import { domainToASCII } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { sql } from '../../support/storage/sql.js'
import { owned } from '../../support/identity/owner.js'
import { bootstrapped, signIn } from '../../support/identity/person.js'
import { sharedMail } from '../../support/operations/letters.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sharedApi } from '../../support/service.js'
import { svc } from '../vault/command.js'

const NEW = 'a new and long enough password'
const mail = await sharedMail()
const { api, running } = await sharedApi('people')

async function recover(t: ExecutionContext, ...words: string[]) {
  const command = svc(t, {
    args: ['admin', 'recover', ...words],
    environment: {
      DATABASE_URL: running.db.url,
      SVC_OIDC__ISSUER_URL: running.issuer,
      SVC_SERVER__TRANSPORT: 'plain_http',
      ...running.kms.environment,
      ...mail.environment,
    },
  })
  const code = await command.ended()
  return { code, output: command.output() }
}

const typesOf = async (tenantId: string) => {
  const rows = await sql<{ type: string }>(
    running.db.database,
    `select type from audit_events where tenant_id = $1
     union all select type from unnumbered_events where tenant_id = $1`,
    [tenantId],
  )
  return rows.map(({ type }) => type)
}

test('an owner without password and second factor gets in by a link that works once', async (t) => {
  const { made, person } = await owned(api)
  const { email, tenantSlug } = person.human
  // Another owner of the organization gets a mail too.
  const fellow = `fellow-${tenantSlug}@harbour.test`
  await sql(
    running.db.database,
    `with a as (insert into accounts (id, email, email_key, display_name, email_verified, created_at, updated_at)
       values (gen_random_uuid(), $1, $1, 'Fellow', true, now(), now()) returning id)
     insert into organization_members (organization_id, member_type, member_id, role, created_at)
     select t.organization_id, 'account', a.id, 'owner', now() from a, tenants t where t.id = $2`,
    [fellow, made.tenantId],
  )
  const voided = await recover(t, email)
  const [earlier = ''] = /http\S+\/auth\/password\/reset\/\S+/.exec(voided.output) ?? []
  const { code, output } = await recover(t, email, '--json')
  t.is(code, 0, output)
  const { url, notified } = JSON.parse(output.slice(output.indexOf('{'))) as {
    url: string
    notified: string[]
  }
  t.deepEqual(notified, [email, fellow])
  t.true((await typesOf(made.tenantId)).includes('admin.account.recovery_issued'))

  const browser = openBrowser(running)
  t.is((await browser.get(new URL(earlier).pathname)).status, 410, 'a new link voids it')
  const page = await browser.get(new URL(url).pathname).gives(200)
  // Opening the link changes nothing.
  const [before] = await sql<{ n: number }>(running)`
    select count(*)::int as n from totp_factors f join accounts a on a.id = f.account_id
    where a.email = ${email}`
  t.is(before?.n, 1)
  t.is((await browser.submit(page, { password: NEW })).status, 200)
  t.is((await browser.get(new URL(url).pathname)).status, 410)
  t.is((await browser.submit(page, { password: 'another long enough one' })).status, 410)

  const entered = await signIn(browser, { tenantSlug, email, password: NEW })
  t.is(entered.location, '/auth/account', 'no second factor is asked for')
  const types = await typesOf(made.tenantId)
  t.true(types.includes('admin.account.recovered'))
  t.true(types.includes('account.password.reset'))
  t.is((await person.browser.get('/auth/account')).status, 303, 'older sessions have ended')
})

test('an owner is recovered by each spelling of the address', async (t) => {
  const made = await bootstrapped(running)
  const letters = `bücher-${made.tenantSlug}.test`
  const stored = `anna@${domainToASCII(letters)}`
  const browser = openBrowser(running)
  const invite = await browser.get(new URL(made.inviteUrl).pathname)
  await browser.submit(invite, { name: 'Anna', email: `anna@${letters}`, password: NEW })
  for (const email of [stored, `anna@${letters.toUpperCase()}`]) {
    const { code, output } = await recover(t, email, '--json')
    t.is(code, 0, output)
    const { notified } = JSON.parse(output.slice(output.indexOf('{'))) as { notified: string[] }
    t.deepEqual(notified, [stored])
  }
})

test('only owners and operators are recovered', async (t) => {
  const { made } = await owned(api, { factor: false })
  const unknown = await recover(t, 'unknown@harbour.test')
  t.is(unknown.code, 1)
  t.regex(unknown.output, /no active account/)
  const member = await recover(t, made.email)
  t.is(member.code, 1)
  t.regex(member.output, /owns no organization/)
})
