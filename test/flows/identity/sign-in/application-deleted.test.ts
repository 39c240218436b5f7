/** An application deleted during one of its requests is treated as unknown. */
import test from 'ava'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { CIBA_GRANT } from '../../../support/oauth/ciba.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  pathOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { sharedApi } from '../../../support/service.js'

const grantTypes = [
  'authorization_code',
  'urn:ietf:params:oauth:grant-type:device_code',
  CIBA_GRANT,
]
const { api, running } = await sharedApi('plain')
const person = await bootstrapped(running)

/** Sends a request while the deletion is uncommitted, and commits once the request waits for it. */
async function meanwhile<T>({ clientId }: RelyingParty, ask: () => Promise<T>): Promise<T> {
  const { database } = running.db
  let asked: Promise<T> | undefined
  await database.system(async (tx) => {
    const text = 'delete from applications where id = $1'
    await tx.query({ name: 'test.deleted_meanwhile', text, values: [clientId] })
    const over = new AbortController()
    asked = ask().finally(() => over.abort())
    for (let waiting = 0; waiting === 0 && !over.signal.aborted; await sleep(10)) {
      const [row] = await sql<{ count: number }>(database)`
        select count(*)::integer as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      waiting = row!.count
    }
  })
  return asked!
}

const pushed = async (party: RelyingParty) => {
  const { url } = await party.journey()
  return Object.fromEntries(url.searchParams)
}
const asking: Readonly<Record<string, (party: RelyingParty) => Promise<Record<string, string>>>> = {
  '/oauth/par': pushed,
  '/oauth/device/code': async () => ({}),
  '/bc-authorize': async () => ({ scope: 'openid', login_hint: mailbox('unknown') }),
}
for (const [path, fieldsOf] of Object.entries(asking))
  test.serial(`${path}: 401`, async (t) => {
    const party = await relyingParty(running, person, { grantTypes })
    const fields = await fieldsOf(party)
    const pair = Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')
    const ask = (): Promise<Answer> => api.form(path, fields, { authorization: `Basic ${pair}` })
    const { status, body, headers } = await meanwhile(party, ask)
    t.is(status, 401, JSON.stringify(body))
    t.is(body['error'], 'invalid_client')
    t.regex(headers['www-authenticate'] ?? '', /^Basic /)
  })

test.serial('/oauth/authorize: a page, before the sign-in and after it', async (t) => {
  const browser = openBrowser(running)
  const stranger = await relyingParty(running, person)
  const { url } = await stranger.journey()
  const before = await meanwhile(stranger, () => browser.get(pathOf(url)))
  t.is(before.status, 400)

  const known = await relyingParty(running, person)
  callbackOf(await authorized(browser, person, (await known.journey()).url))
  const again = await known.journey()
  const after = await meanwhile(known, () => browser.get(pathOf(again.url)))
  t.is(after.status, 400)
})
