/** SSH certificates end to end, with a real sshd. */
import { generateKeyPairSync } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import { request } from 'undici'
import { freshKeyPair } from '../../../runtime/kernel/key-pair.js'
import { authority, certificate } from '../../../actors/vault/ssh-certificates/compute.js'
import type { Json } from '../../support/api.js'
import { crowdWithEnded } from '../../support/oauth/grants.js'
import { sql } from '../../support/storage/sql.js'
import { program, testWithProgram } from '../../support/service/programs.js'
import { sharedApi } from '../../support/service.js'
import { ran, type Ran, type Sshd, sshFolder, startSshd, USER } from '../../support/vault/ssh.js'
import { IS_LONG } from '../../support/runs.js'

const CREDENTIALS = '/api/v1/vault/credentials'
const SIGN = '/api/v1/agents/delegations/ssh-sign'
const HOST = 'db1.example'
/** Kinds of authorities whose certificates log in. The test of times covers the other kind daily. */
const KINDS: readonly string[] = IS_LONG ? ['ed25519', 'ecdsa'] : ['ed25519']

const { api, running } = await sharedApi('plain')
const folder = sshFolder()
const sshdPath = process.getuid?.() === 0 ? program('sshd') : undefined
let sshd: Sshd | undefined
if (sshdPath !== undefined && program('ssh') !== undefined) sshd = await startSshd(sshdPath, folder)
test.after.always(async () => {
  await sshd?.stop()
  folder.remove()
})

async function authorityOf(token: string, more: Json = {}) {
  const created = await api.post(CREDENTIALS, token, {
    provider: 'ssh',
    credential_type: 'ssh_ca',
    label: 'Bastion authority',
    ...more,
  })
  if (created.status !== 201) throw new Error(JSON.stringify(created.body))
  const { id, ca_public_key } = created.body
  return { id: String(id), caPublicKey: String(ca_public_key), body: created.body }
}

const sign = (token: string, credentialId: string, more: Json = {}) =>
  api.post(SIGN, token, {
    credential_id: credentialId,
    target_host: HOST,
    principals: ['deploy'],
    ...more,
  })

async function krlOf(token: string, credentialId: string): Promise<Uint8Array> {
  const url = new URL(`${CREDENTIALS}/${credentialId}/krl`, running.baseUrl)
  const { body, statusCode } = await request(url, { headers: { authorization: `Bearer ${token}` } })
  if (statusCode !== 200) throw new Error(await body.text())
  return new Uint8Array(await body.arrayBuffer())
}

test('an agent gets the requested certificate from its own authority', async (t) => {
  const { token, agentId, tenantId } = await api.workspace()
  const { id, caPublicKey, body } = await authorityOf(token)
  t.like(body, { credential_type: 'ssh_ca', auth_scheme: 'none', non_exportable: true })
  t.regex(caPublicKey, /^ssh-ed25519 [A-Za-z0-9+/=]+$/)
  const before = Math.floor(Date.now() / 1000)
  const answer = await sign(token, id, { principals: ['deploy', 'Root'], validity_seconds: 90 })
  const after = Math.floor(Date.now() / 1000)
  t.is(answer.status, 200)
  t.is(answer.headers['cache-control'], 'no-store')
  const { certificate, private_key, public_key, serial, valid_after, valid_before } = answer.body
  t.like(answer.body, {
    key_id: `svc:${tenantId}:${agentId}`,
    principals: ['deploy', 'Root'],
    target_host: HOST,
    ca_public_key: caPublicKey,
  })
  t.regex(String(certificate), /^ssh-ed25519-cert-v01@openssh\.com [A-Za-z0-9+/=]+ svc:/)
  t.regex(String(private_key), /^-----BEGIN OPENSSH PRIVATE KEY-----\n/)
  t.regex(String(public_key), /^ssh-ed25519 /)
  t.true(BigInt(String(serial)) > 0n)
  const secs = (time: unknown) => Date.parse(String(time)) / 1000
  t.is(secs(valid_before) - secs(valid_after), 150)
  t.true(secs(valid_before) >= before + 90 && secs(valid_before) <= after + 90)
  const read = await api.get(`${CREDENTIALS}/${id}`, token)
  t.truthy(read.body['last_used_at'])
  const [event] = await sql<{ data: Json }>(running)`
    select data from all_events where type = 'vault.credential.accessed'
    and data #>> '{resource,id}' = ${id}`
  t.like(event?.data, {
    actor: { type: 'agent', id: agentId },
    resource: { type: 'vault_credential', id },
    access: 'ssh_sign',
    serial,
    target_host: HOST,
  })
})

test('the default validity is 300 seconds, and invalid values are refused, not clamped', async (t) => {
  const { token } = await api.workspace()
  const { id } = await authorityOf(token)
  const { body } = await sign(token, id)
  const between = Date.parse(String(body['valid_before'])) - Date.parse(String(body['valid_after']))
  t.is(between, 360_000)
  const bad: Json[] = [
    { validity_seconds: 0 },
    { validity_seconds: 3601 },
    { validity_seconds: 1.5 },
    { principals: [] },
    { principals: ['a b'] },
    { principals: ['*'] },
    { principals: ['a,b'] },
    { principals: Array.from({ length: 17 }, (_, index) => `user${index}`) },
    { target_host: '' },
    { target_host: '*.example' },
    { target_host: 'db1.example:22' },
    { target_host: '127.0.0.1' },
    { source_addresses: ['10.0.0.1'] },
    { source_addresses: ['10.0.0.1/8'] },
    { force_command: 'a\nb' },
    { public_key: 'nonsense' },
    { public_key: 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==' },
  ]
  for (const more of bad) t.is((await sign(token, id, more)).status, 400, JSON.stringify(more))
  t.is((await sign(token, id, { validity_seconds: 3600 })).status, 200)
})

test('an RSA authority is refused at its creation', async (t) => {
  const { token } = await api.workspace()
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const secret = privateKey.export({ format: 'pem', type: 'pkcs8' })
  const created = await api.post(CREDENTIALS, token, {
    provider: 'ssh',
    credential_type: 'ssh_ca',
    label: 'Old',
    secret,
  })
  t.is(created.status, 400)
  t.true(JSON.stringify(created.body).includes('ed25519 or ECDSA P-256'))
  t.false(JSON.stringify(created.body).includes('BEGIN'))
})

test('the owner and agents with an active grant can sign', async (t) => {
  const owner = await api.workspace()
  const { id } = await authorityOf(owner.token, { allowed_hosts: ['DB1.Example.', 'db2.example'] })
  t.is((await sign(owner.token, id, { target_host: 'Db1.example.' })).status, 200)
  t.is((await sign(owner.token, id, { target_host: 'db3.example' })).body['error'], 'policy_denied')

  const helper = await api.register(owner.tenantId)
  const { body } = await api.login(helper.key, { agent_id: helper.agentId })
  const token = String(body['access_token'])
  t.is((await sign(token, id)).status, 404)
  const grants = `${CREDENTIALS}/${id}/grants`
  const granted = await api.post(grants, owner.token, {
    grantee_type: 'agent',
    grantee_id: helper.agentId,
  })
  t.is(granted.status, 201)
  t.deepEqual(granted.body['capabilities'], ['list', 'sign'])
  t.is((await sign(token, id)).status, 200)
  // Hosts that were added later are not part of the grant.
  const wider = { allowed_hosts: ['db1.example', 'db3.example'] }
  t.is((await api.patch(`${CREDENTIALS}/${id}`, owner.token, wider)).status, 200)
  t.is((await sign(owner.token, id, { target_host: 'db3.example' })).status, 200)
  t.is((await sign(token, id, { target_host: 'db3.example' })).status, 403)
  t.is((await sign(token, id, { target_host: 'db2.example' })).status, 403)
  await crowdWithEnded(running.db.database, String(granted.body['id']))
  t.is((await sign(token, id)).status, 200, 'expired grants do not hide an active one')
  const revoke = `/api/v1/vault/grants/${String(granted.body['id'])}/revoke`
  t.is((await api.post(revoke, owner.token)).status, 200)
  t.is((await sign(token, id)).status, 404)

  // A grant that ended with its credential gets 403; others get 404.
  await api.post(grants, owner.token, { grantee_type: 'agent', grantee_id: helper.agentId })
  t.is((await api.post(`${CREDENTIALS}/${id}/revoke`, owner.token)).status, 200)
  t.is((await sign(token, id)).body['error'], 'policy_denied')
  t.is((await sign(owner.token, id)).body['error'], 'policy_denied')
  const stranger = await api.workspace()
  t.is((await sign(stranger.token, id)).status, 404)
  t.is((await sign(stranger.token, 'not-a-uuid')).status, 404)
})

test('only an ssh_ca signs, and only for a direct agent token', async (t) => {
  const { token } = await api.workspace()
  const { body } = await api.post(CREDENTIALS, token, {
    provider: 'api',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    secret: 'k',
  })
  t.is((await sign(token, String(body['id']))).body['error'], 'policy_denied')
  t.is((await api.post(SIGN, undefined, {})).status, 401)
})

test('a token signs with vault:sign or vault:read, and not with other scopes', async (t) => {
  const { token, key, tenantId, agentId } = await api.workspace()
  const { id } = await authorityOf(token)
  const narrowed = async (scope: string) => {
    const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId }, scope)
    return String(body['access_token'])
  }
  for (const scope of ['openid', 'vault:list', 'vault:manage']) {
    const refused = await sign(await narrowed(scope), id)
    t.is(refused.status, 403, scope)
    t.is(refused.body['error'], 'insufficient_scope', scope)
    t.regex(refused.headers['www-authenticate'] ?? '', /scope="vault:sign vault:read"/)
  }
  for (const scope of ['vault:sign', 'vault:read']) {
    t.is((await sign(await narrowed(scope), id)).status, 200, scope)
  }
})

test('an invalid Ed25519 key is not certified', async (t) => {
  const { token } = await api.workspace()
  const { id } = await authorityOf(token)
  const blob = (point: Uint8Array) =>
    `ssh-ed25519 ${Buffer.concat([
      Buffer.from('0000000b7373682d6564323535313900000020', 'hex'),
      point,
    ]).toString('base64')}`
  const points = [
    Buffer.alloc(32),
    Buffer.concat([Buffer.of(1), Buffer.alloc(31)]),
    Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85', 'hex'),
    // Past p: another encoding of 3.
    Buffer.from('f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', 'hex'),
    Buffer.concat([Buffer.of(2), Buffer.alloc(31)]),
  ]
  for (const point of points) {
    const answer = await sign(token, id, { public_key: blob(point) })
    t.is(answer.status, 400, point.toString('hex'))
    t.is((answer.body['errors'] as Json[])[0]!['pointer'], '#/public_key')
  }
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
  await sign(token, id, { public_key: blob(Buffer.from(x, 'base64url')) }).gives(200)
})

test('an authority can be granted to sign and list, not to use', async (t) => {
  const { token, agentId } = await api.workspace()
  const { id } = await authorityOf(token)
  const grant = (capabilities: string[]) =>
    api.post(`${CREDENTIALS}/${id}/grants`, token, {
      grantee_type: 'agent',
      grantee_id: agentId,
      capabilities,
    })
  for (const bad of [['use'], ['sign', 'use'], ['list', 'use']]) {
    t.is((await grant(bad)).status, 400, bad.join(' '))
  }
  for (const good of [['sign'], ['list'], ['list', 'sign']]) {
    t.is((await grant(good)).status, 201, good.join(' '))
  }
})

test('a caller can narrow the source addresses of the authority, not widen them', async (t) => {
  const { token } = await api.workspace()
  const metadata = { source_addresses: ['10.0.0.0/8'] }
  const { id } = await authorityOf(token, { metadata })
  t.is((await sign(token, id, { source_addresses: ['10.1.0.0/16'] })).status, 200)
  t.is((await sign(token, id, { source_addresses: ['192.168.0.0/16'] })).status, 403)
  t.is((await sign(token, id, { source_addresses: ['0.0.0.0/0'] })).status, 403)
  const bad = { metadata: { source_addresses: ['10.0.0.1/8'] } }
  t.is((await api.patch(`${CREDENTIALS}/${id}`, token, bad)).status, 400)
})

testWithProgram(
  'ssh-keygen',
  'revoked serials are in the list immediately, and only those',
  async (t, keygen) => {
    const { token, tenantId } = await api.workspace()
    const { id } = await authorityOf(token)
    const [first, second] = [await sign(token, id), await sign(token, id)]
    const revoke = `${CREDENTIALS}/${id}/revoke-certificate`
    const { serial } = first.body
    const revoked = await api.post(revoke, token, { serial }).gives(200)
    t.deepEqual((await api.post(revoke, token, { serial })).body, revoked.body)
    t.is((await api.post(revoke, token, { serial: '1' })).status, 404)
    t.is((await api.post(revoke, token, { serial: '99999999999999999999' })).status, 404)
    const place = sshFolder()
    t.teardown(place.remove)
    const check = async ({ body }: { body: Json }) => {
      const krl = place.write('krl', await krlOf(token, id))
      return (await ran(keygen, '-Q', '-f', krl, place.write('c.pub', String(body['certificate']))))
        .code
    }
    t.is(await check(first), 1)
    t.is(await check(second), 0)
    // An agent without vault:manage that is not the owner cannot revoke.
    const other = await api.register(tenantId)
    const { body } = await api.login(other.key, { agent_id: other.agentId })
    const refused = await api.post(revoke, String(body['access_token']), {
      serial: second.body['serial'],
    })
    t.is(refused.body['error'], 'insufficient_scope')
    t.is(await check(second), 0)
    // Revoking the authority revokes all it signed, also before a rotation.
    t.is((await api.post(`${CREDENTIALS}/${id}/rotate`, token, {})).status, 200)
    const third = await sign(token, id)
    t.not(third.body['ca_public_key'], second.body['ca_public_key'])
    t.is((await api.post(`${CREDENTIALS}/${id}/revoke`, token)).status, 200)
    t.is(await check(second), 1)
    t.is(await check(third), 1)
  },
)

/** The files of a login. */
function files(name: string, { body }: { body: Json }) {
  folder.write(`${name}-cert.pub`, `${String(body['certificate'])}\n`)
  folder.write(name, String(body['private_key']))
  return [folder.path(name), folder.path(`${name}-cert.pub`)] as const
}

const entered = (t: ExecutionContext, { code, output }: Ran) => {
  t.is(code, 0, output)
  t.is(output, 'in\n')
}
const turnedAway = (t: ExecutionContext, { code, output }: Ran) => {
  t.is(code, 255, output)
  t.true(output.includes('Permission denied'), output)
}

const title = 'sshd accepts a certificate, and refuses one for another, changed or revoked'
if (sshdPath === undefined || program('ssh') === undefined) {
  test.skip(`${title} (skipped: needs sshd, ssh and root)`, () => undefined)
} else {
  test.serial(title, async (t) => {
    t.timeout(120_000)
    const server = sshd!
    const { token } = await api.workspace()
    for (const kind of KINDS) {
      const more = kind === 'ed25519' ? {} : { secret: ecdsaPem() }
      const { id, caPublicKey } = await authorityOf(token, more)
      server.trust(caPublicKey)
      server.revoke(await krlOf(token, id))
      const good = await sign(token, id, { principals: [USER] })
      const [key, certificate] = files(kind, good)
      entered(t, await server.login(USER, key, certificate))

      // A signature of another authority is not trusted.
      const stranger = await authorityOf(token)
      const foreign = files('foreign', await sign(token, stranger.id, { principals: [USER] }))
      turnedAway(t, await server.login(USER, ...foreign))

      const other = files('other', await sign(token, id, { principals: ['another-user'] }))
      turnedAway(t, await server.login(USER, ...other))

      const elsewhere = await sign(token, id, {
        principals: [USER],
        source_addresses: ['203.0.113.0/24'],
      })
      turnedAway(t, await server.login(USER, ...files('elsewhere', elsewhere)))

      const forced = await sign(token, id, { principals: [USER], force_command: 'echo forced' })
      t.is((await server.login(USER, ...files('forced', forced))).output, 'forced\n')

      // A changed principal in a certificate for another user.
      const padded = 'x'.repeat(USER.length)
      const changed = await sign(token, id, { principals: [padded] })
      turnedAway(t, await server.login(USER, ...files('changed', tampered(changed, padded, USER))))

      const revoked = `${CREDENTIALS}/${id}/revoke-certificate`
      t.is((await api.post(revoked, token, { serial: good.body['serial'] })).status, 200)
      server.revoke(await krlOf(token, id))
      turnedAway(t, await server.login(USER, key, certificate))
      const fresh = files('fresh', await sign(token, id, { principals: [USER] }))
      entered(t, await server.login(USER, ...fresh))
      t.is((await api.post(`${CREDENTIALS}/${id}/revoke`, token)).status, 200)
      server.revoke(await krlOf(token, id))
      turnedAway(t, await server.login(USER, ...fresh))
    }
  })

  test.serial('sshd refuses a certificate outside of its time', async (t) => {
    t.timeout(120_000)
    const server = sshd!
    const { token } = await api.workspace()
    const { id, caPublicKey } = await authorityOf(token)
    server.trust(caPublicKey)
    server.revoke(await krlOf(token, id))
    const short = await sign(token, id, { principals: [USER], validity_seconds: 1 })
    const leftMs = Date.parse(String(short.body['valid_before'])) - Date.now()
    await new Promise((resolve) => setTimeout(resolve, leftMs + 1_100))
    turnedAway(t, await server.login(USER, ...files('expired', short)))

    // The service signs no certificates for the future, so the test signs this one.
    const pem = ecdsaPem()
    const ours = await authorityOf(token, { secret: pem })
    server.trust(ours.caPublicKey)
    const signedAt = (afterSecs: number) => {
      const made = authority({ privateKey: pem })
      if (made.tag !== 'authority') throw new Error(made.detail)
      const nowSecs = Math.floor(Date.now() / 1000)
      const signed = certificate({
        authority: made,
        publicKey: null,
        keyId: 'svc:early',
        serial: '1',
        nonce: new Uint8Array(32),
        principals: [USER],
        targetHost: HOST,
        validAfterSecs: nowSecs + afterSecs,
        validBeforeSecs: nowSecs + afterSecs + 3_600,
        sourceAddresses: [],
        forceCommand: null,
      })
      if (signed.tag !== 'certificate') throw new Error(signed.tag)
      return { body: { certificate: signed.certificate, private_key: signed.privateKey } }
    }
    turnedAway(t, await server.login(USER, ...files('early', signedAt(600))))
    entered(t, await server.login(USER, ...files('now', signedAt(-600))))
  })
}

/** The same certificate with one name replaced by another of the same length. */
function tampered({ body }: { body: Json }, from: string, to: string): { body: Json } {
  const [type, base64, comment] = String(body['certificate']).split(' ')
  const blob = Buffer.from(base64!, 'base64')
  const at = blob.indexOf(from)
  if (at < 0) throw new Error('the principal is not in the certificate')
  blob.write(to, at)
  return { body: { ...body, certificate: `${type} ${blob.toString('base64')} ${comment}` } }
}

function ecdsaPem(): string {
  const { privateKey } = freshKeyPair('P-256')
  return privateKey.export({ format: 'pem', type: 'pkcs8' }) as string
}
