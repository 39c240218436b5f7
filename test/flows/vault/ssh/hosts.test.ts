/** Certificates that are taken back: what revokes them, what hosts poll, and `svc ssh host-setup` with a real sshd. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import test from 'ava'
import type { Answer, Json, Workspace } from '../../../support/api.js'
import { delegate, fixtureOf, ownToken, present } from '../../../support/agents/delegation.js'
import { sharedApi } from '../../../support/service.js'
import { program, testWithProgram } from '../../../support/service/programs.js'
import { ran, sshFolder, startSshd, USER } from '../../../support/vault/ssh.js'
import { raw } from '../../../support/vault/raw.js'
import { svc } from '../command.js'

const CREDENTIALS = '/api/v1/vault/credentials'
const { api, running } = await sharedApi('plain')

async function authority(token: string) {
  const made = await api
    .post(CREDENTIALS, token, { provider: 'ssh', credential_type: 'ssh_ca', label: 'Hosts' })
    .gives(201)
  return { id: String(made.body['id']), caPublicKey: String(made.body['ca_public_key']) }
}

const sign = (token: string, credentialId: string, more: Json = {}) =>
  api
    .post('/api/v1/agents/delegations/ssh-sign', token, {
      credential_id: credentialId,
      target_host: 'db1.example',
      principals: ['deploy'],
      ...more,
    })
    .gives(200)

const revoke = (token: string, id: string, name: Json) =>
  api.post(`${CREDENTIALS}/${id}/revoke-certificate`, token, name)

const polled = (id: string, file: string, headers: Readonly<Record<string, string>> = {}) =>
  raw(running, `/ssh/${id}/${file}`, headers)

async function another(owner: Workspace) {
  const { key, agentId } = await api.register(owner.tenantId)
  const { body } = await api.login(key, { agent_id: agentId })
  return { agentId, token: String(body['access_token']) }
}

/** Asks ssh-keygen whether the present list revokes a certificate. */
function asking(keygen: string, t: { teardown(end: () => void): void }) {
  const place = sshFolder()
  t.teardown(place.remove)
  return async (id: string, { body }: Answer | { body: Json }) => {
    const krl = place.write('krl', (await polled(id, 'krl')).body)
    const { code } = await ran(
      keygen,
      '-Q',
      '-f',
      krl,
      place.write('c', String(body['certificate'])),
    )
    return code === 1
  }
}

test('hosts poll the list without a token, with an entity tag', async (t) => {
  const { token } = await api.workspace()
  const { id, caPublicKey } = await authority(token)
  const first = await polled(id, 'krl')
  t.is(first.status, 200)
  t.is(first.headers['content-type'], 'application/octet-stream')
  t.regex(String(first.headers['cache-control']), /^public, max-age=\d$/)
  const etag = String(first.headers['etag'])
  t.regex(etag, /^"[^"]+"$/)
  const same = await polled(id, 'krl', { 'if-none-match': etag })
  t.is(same.status, 304)
  t.is(same.body.length, 0)
  const api1 = await raw(running, `${CREDENTIALS}/${id}/krl`, { authorization: `Bearer ${token}` })
  t.is(api1.headers['etag'], etag)
  t.deepEqual(api1.body, first.body)
  t.is(
    (
      await raw(running, `${CREDENTIALS}/${id}/krl`, {
        authorization: `Bearer ${token}`,
        'if-none-match': etag,
      })
    ).status,
    304,
  )
  const { body } = await sign(token, id)
  t.is((await polled(id, 'krl')).headers['etag'], etag, 'a signature changes no list')
  await revoke(token, id, { serial: body['serial'] }).gives(200)
  const second = await polled(id, 'krl', { 'if-none-match': etag })
  t.is(second.status, 200)
  const version = (krl: Buffer) => krl.readBigUInt64BE(12)
  t.true(version(second.body) > version(first.body))
  t.is((await polled(id, 'ca.pub')).body.toString(), `${caPublicKey}\n`)

  const secret = await api
    .post(CREDENTIALS, token, {
      provider: 'api',
      credential_type: 'api_key',
      label: 'Key',
      auth_scheme: 'bearer',
      secret: 'k',
    })
    .gives(201)
  for (const unknown of [String(secret.body['id']), crypto.randomUUID(), 'nonsense']) {
    t.is((await polled(unknown, 'krl')).status, 404)
    t.is((await polled(unknown, 'ca.pub')).status, 404)
  }
})

testWithProgram(
  'ssh-keygen',
  'list and CA keys are signed by a key that never changes',
  async (t, keygen) => {
    const { token } = await api.workspace()
    const { id, caPublicKey } = await authority(token)
    const place = sshFolder()
    t.teardown(place.remove)
    const verified = async (file: string, namespace: string, change = false) => {
      const content = Buffer.from((await polled(id, file)).body)
      if (change) content[content.length - 1]! ^= 1
      place.write(file, content)
      const signature = place.write('sig', (await polled(id, `${file}.sig`)).body)
      const signers = place.write('signers', (await polled(id, 'allowed_signers')).body)
      const command = `${keygen} -Y verify -f ${signers} -I svc -n ${namespace} -s ${signature} < ${place.path(file)}`
      return (await ran('sh', '-c', command)).code === 0
    }
    t.true(await verified('krl', 'svc-krl'))
    t.true(await verified('ca.pub', 'svc-ca'))
    t.false(await verified('krl', 'svc-krl', true))
    t.false(await verified('krl', 'svc-ca'))
    const signers = (await polled(id, 'allowed_signers')).body.toString()
    await sign(token, id)
    await api.post(`${CREDENTIALS}/${id}/rotate`, token, {}).gives(200)
    t.true(await verified('ca.pub', 'svc-ca'))
    const lines = (await polled(id, 'ca.pub')).body.toString().trim().split('\n')
    t.is(lines.length, 2, 'the former key while its certificates are valid')
    t.is(lines[1], caPublicKey)
    await api.post(`${CREDENTIALS}/${id}/revoke`, token).gives(200)
    t.true(await verified('krl', 'svc-krl'), 'a revoked authority has a signed list')
    t.is((await polled(id, 'allowed_signers')).body.toString(), signers)
  },
)

testWithProgram(
  'ssh-keygen',
  'certificates are revoked by each of their names',
  async (t, keygen) => {
    const owner = await api.workspace()
    const { token } = owner
    const { id } = await authority(token)
    const helper = await another(owner)
    await api
      .post(`${CREDENTIALS}/${id}/grants`, token, {
        grantee_type: 'agent',
        grantee_id: helper.agentId,
      })
      .gives(201)
    const isRevoked = asking(keygen, t)
    const [first, second] = [
      await sign(token, id),
      await sign(token, id, { principals: ['root', 'ops'] }),
    ]
    const others = await sign(helper.token, id)

    const bySerial = await revoke(token, id, { serial: first.body['serial'] }).gives(200)
    t.is(bySerial.body['serial'], first.body['serial'])
    t.deepEqual([await isRevoked(id, first), await isRevoked(id, second)], [true, false])

    const byPrincipal = await revoke(token, id, { principal: 'ops' }).gives(200)
    t.deepEqual(byPrincipal.body['serials'], [second.body['serial']])
    t.is(byPrincipal.body['serial'], undefined)
    t.deepEqual([await isRevoked(id, second), await isRevoked(id, others)], [true, false])

    await revoke(token, id, { key_id: others.body['key_id'] }).gives(200)
    t.true(await isRevoked(id, others))
    t.false(await isRevoked(id, await sign(helper.token, id)))

    const place = sshFolder()
    t.teardown(place.remove)
    await ran(keygen, '-q', '-t', 'ed25519', '-N', '', '-C', 'mine', '-f', place.path('own'))
    const line = readFileSync(place.path('own.pub'), 'utf8').trim()
    const own = await sign(token, id, { public_key: line })
    const byKey = await revoke(token, id, { public_key: line }).gives(200)
    t.deepEqual(byKey.body['serials'], [own.body['serial']])
    t.true(await isRevoked(id, own))
    const krl = place.write('krl', (await polled(id, 'krl')).body)
    t.is((await ran(keygen, '-Q', '-f', krl, place.path('own.pub'))).code, 1)
    const again = await api.post('/api/v1/agents/delegations/ssh-sign', token, {
      credential_id: id,
      target_host: 'db1.example',
      principals: ['deploy'],
      public_key: line,
    })
    t.is(again.status, 403)
    t.is(again.body['error'], 'policy_denied')
    t.deepEqual((await revoke(token, id, { public_key: line }).gives(200)).body['serials'], [
      own.body['serial'],
    ])

    for (const [name, status] of [
      [{}, 400],
      [{ serial: '1', key_id: 'x' }, 400],
      [{ public_key: 'nonsense' }, 400],
      [{ principal: 'a b' }, 400],
      [{ serial: '1' }, 404],
      [{ key_id: 'svc:unknown' }, 404],
      [{ principal: 'nobody' }, 404],
      [{ delegation_id: crypto.randomUUID() }, 404],
      [{ delegation_id: 'nonsense' }, 404],
    ] as const) {
      t.is((await revoke(token, id, name)).status, status, JSON.stringify(name))
    }
    const stranger = await api.workspace()
    t.is((await revoke(stranger.token, id, { key_id: others.body['key_id'] })).status, 404)
  },
)

testWithProgram(
  'ssh-keygen',
  'what allowed a certificate revokes it when it ends',
  async (t, keygen) => {
    const owner = await api.workspace()
    const { token } = owner
    const { id } = await authority(token)
    const isRevoked = asking(keygen, t)
    const grants = `${CREDENTIALS}/${id}/grants`
    const grant = (body: Json) => api.post(grants, token, body).gives(201)
    const kept = await sign(token, id)

    const helper = await another(owner)
    const granted = await grant({ grantee_type: 'agent', grantee_id: helper.agentId })
    const underGrant = await sign(helper.token, id)
    t.false(await isRevoked(id, underGrant))
    await api.post(`/api/v1/vault/grants/${String(granted.body['id'])}/revoke`, token).gives(200)
    t.true(await isRevoked(id, underGrant))

    const expiresAt = new Date(Date.now() + 100_000)
    await grant({
      grantee_type: 'agent',
      grantee_id: helper.agentId,
      expires_at: expiresAt.toISOString(),
    })
    const short = await sign(helper.token, id, { validity_seconds: 3_600 })
    t.true(Date.parse(String(short.body['valid_before'])) <= expiresAt.getTime())
    await api.post(`/api/v1/agents/${helper.agentId}/suspend`, token).gives(200)
    t.true(await isRevoked(id, short))
    t.false(await isRevoked(id, kept))
  },
)

testWithProgram(
  'ssh-keygen',
  'the end of a delegation revokes what its grant signed',
  async (t, keygen) => {
    const owner = await api.workspace()
    const { token } = owner
    const { id } = await authority(token)
    const isRevoked = asking(keygen, t)
    const helper = await another(owner)
    const person = await present(api, fixtureOf(owner))
    const delegated = await delegate(api, helper.token, person)
    const { delegationId } = delegated
    const grant = { grantee_type: 'delegation', grantee_id: delegationId }
    await api.post(`${CREDENTIALS}/${id}/grants`, token, grant).gives(201)
    const first = await sign(helper.token, id)
    const byName = await revoke(token, id, { delegation_id: delegationId }).gives(200)
    t.deepEqual(byName.body['serials'], [first.body['serial']])
    t.true(await isRevoked(id, first))
    const second = await sign(helper.token, id)
    t.false(await isRevoked(id, second))
    const own = await ownToken(api, owner, person)
    await api.post(`/api/v1/delegations/${delegationId}/revoke`, own).gives(200)
    t.true(await isRevoked(id, second))
    const refused = await api.post('/api/v1/agents/delegations/ssh-sign', helper.token, {
      credential_id: id,
      target_host: 'db1.example',
      principals: ['deploy'],
    })
    t.is(refused.status, 404)
  },
)

const sshdPath = process.getuid?.() === 0 ? program('sshd') : undefined
const title = 'svc ssh host-setup: sshd refuses what was revoked after one run of the timer'
if (sshdPath === undefined || program('ssh') === undefined) {
  test.skip(`${title} (skipped: needs sshd, ssh and root)`, () => undefined)
} else {
  test(title, async (t) => {
    t.timeout(180_000)
    const owner = await api.workspace()
    const { token } = owner
    const { id, caPublicKey } = await authority(token)
    const folder = sshFolder()
    t.teardown(folder.remove)
    const root = folder.path('root')
    const ca = running.ca === undefined ? [] : ['--ca-file', folder.write('ca.pem', running.ca)]
    const setUp = async (...args: string[]) => {
      const command = svc(t, { args: ['ssh', 'host-setup', '--root', root, ...args] })
      return { code: await command.ended(), output: command.output() }
    }
    t.is((await setUp('--check')).code, 1, 'nothing is set up')
    const access = ['--url', running.baseUrl, '--authority', id, ...ca]
    const made = await setUp(...access)
    t.is(made.code, 0, made.output)
    for (const path of [
      'etc/ssh/svc/krl',
      'etc/ssh/svc/ca.pub',
      'etc/systemd/system/svc-ssh-refresh.timer',
    ]) {
      t.regex(made.output, new RegExp(`${root}/${path}`))
    }
    const config = `${root}/etc/ssh/sshd_config.d/10-svc.conf`
    t.regex(
      readFileSync(config, 'utf8'),
      new RegExp(`^TrustedUserCAKeys ${root}/etc/ssh/svc/ca.pub$`, 'm'),
    )
    t.regex(readFileSync(config, 'utf8'), new RegExp(`^RevokedKeys ${root}/etc/ssh/svc/krl$`, 'm'))
    t.is(readFileSync(`${root}/etc/ssh/svc/ca.pub`, 'utf8'), `${caPublicKey}\n`)
    t.is((await setUp('--check')).code, 0)
    const again = await setUp(...access)
    t.is(again.code, 0, again.output)
    t.notRegex(again.output, /^wrote/m)

    // The timer starts the service often enough for a minute: its period, the cache of the list, and the time of a run.
    const unit = (kind: string) =>
      readFileSync(`${root}/etc/systemd/system/svc-ssh-refresh.${kind}`, 'utf8')
    const seconds = (text: string, name: string) =>
      Number(new RegExp(`^${name}=(\\d+)s?$`, 'm').exec(text)![1])
    const { headers } = await polled(id, 'krl')
    const cached = Number(/max-age=(\d+)/.exec(String(headers['cache-control']))![1])
    t.true(
      seconds(unit('timer'), 'OnUnitActiveSec') +
        seconds(unit('timer'), 'AccuracySec') +
        seconds(unit('service'), 'TimeoutStartSec') +
        cached <=
        61,
    )
    const command = /^ExecStart=(.*)$/m.exec(unit('service'))![1]!
    const timer = () => ran('sh', '-c', command)

    const server = await startSshd(sshdPath, folder, { trustless: true })
    t.teardown(() => server.stop())
    const sshdConfig = folder.path('sshd_config')
    writeFileSync(sshdConfig, `Include ${config}\n${readFileSync(sshdConfig, 'utf8')}`)
    await server.reload()
    const files = (name: string, { body }: Answer) => {
      folder.write(`${name}-cert.pub`, `${String(body['certificate'])}\n`)
      return [
        folder.write(name, String(body['private_key'])),
        folder.path(`${name}-cert.pub`),
      ] as const
    }
    const helper = await another(owner)
    const granted = await api
      .post(`${CREDENTIALS}/${id}/grants`, token, {
        grantee_type: 'agent',
        grantee_id: helper.agentId,
      })
      .gives(201)
    const mine = files('mine', await sign(token, id, { principals: [USER] }))
    const theirs = files('theirs', await sign(helper.token, id, { principals: [USER] }))
    t.is((await server.login(USER, ...mine)).code, 0)
    t.is((await server.login(USER, ...theirs)).code, 0)

    await api.post(`/api/v1/vault/grants/${String(granted.body['id'])}/revoke`, token).gives(200)
    t.is((await timer()).code, 0)
    const refused = await server.login(USER, ...theirs)
    t.is(refused.code, 255)
    t.regex(refused.output, /Permission denied/)
    t.is((await server.login(USER, ...mine)).code, 0, 'others still pass')

    // A new key of the authority arrives by the same way.
    await api.post(`${CREDENTIALS}/${id}/rotate`, token, {}).gives(200)
    t.is((await timer()).code, 0)
    const fresh = files('fresh', await sign(token, id, { principals: [USER] }))
    t.is((await server.login(USER, ...fresh)).code, 0)
    t.is((await server.login(USER, ...mine)).code, 0)

    // A list that is not signed by the pinned key is not taken.
    const before = readFileSync(`${root}/etc/ssh/svc/krl`)
    const stranger = await authority(token)
    const signers = `${root}/etc/ssh/svc/allowed_signers`
    const pinned = readFileSync(signers)
    writeFileSync(signers, (await polled(stranger.id, 'allowed_signers')).body)
    rmSync(`${root}/etc/ssh/svc/krl.etag`)
    const wrong = await timer()
    t.is(wrong.code, 1)
    t.regex(wrong.output, /signature/)
    t.deepEqual(readFileSync(`${root}/etc/ssh/svc/krl`), before)
    t.is((await setUp('--check')).code, 1)
    writeFileSync(signers, pinned)

    // An older list is not taken back.
    const older = Buffer.from(before)
    older.writeBigUInt64BE(2n ** 62n, 12)
    writeFileSync(`${root}/etc/ssh/svc/krl`, older)
    t.regex((await timer()).output, /older/)
    writeFileSync(`${root}/etc/ssh/svc/krl`, before)
    t.is((await setUp('--check')).code, 0)
    t.false(existsSync(`${root}/etc/ssh/svc/krl.new`))
  })
}
