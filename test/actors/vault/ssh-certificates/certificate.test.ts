/** Certificates, keys and revocation lists, read by OpenSSH itself (PROTOCOL.certkeys, PROTOCOL.krl). */
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import {
  type AuthorityKey,
  type CertificateInput,
  authority,
  certificate,
} from '../../../../actors/vault/ssh-certificates/compute.js'
import { publicKeyLine, string } from '../../../../actors/vault/ssh-certificates/wire.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { ran, sshFolder } from '../../../support/vault/ssh.js'
import { encodeKrl } from '../../../../actors/vault/ssh-certificates/krl.js'
import { isSoundPoint, readPublicKey } from '../../../../actors/vault/ssh-certificates/keys.js'
import { IS_LONG } from '../../../support/runs.js'

const KEY_ID = 'svc:tenant:agent'

function madeAuthority(privateKey: string | null = null) {
  const made = authority({ privateKey })
  if (made.tag !== 'authority') throw new Error(made.detail)
  return made
}

const input = (more: Partial<CertificateInput> = {}): CertificateInput => ({
  authority: madeAuthority(),
  publicKey: null,
  keyId: KEY_ID,
  serial: '18446744073709551615',
  nonce: new Uint8Array(32).fill(7),
  principals: ['deploy', 'Ops.2@db_1'],
  targetHost: 'db1.example',
  validAfterSecs: 1_900_000_000,
  validBeforeSecs: 1_900_000_360,
  sourceAddresses: [],
  forceCommand: null,
  ...more,
})

function signed(more: Partial<CertificateInput> = {}) {
  const made = certificate(input(more))
  if (made.tag !== 'certificate') throw new Error(made.tag)
  return made
}

const pem = (name: 'ed25519' | 'prime256v1' | 'secp384r1' | 'rsa') =>
  (name === 'ed25519'
    ? freshKeyPair('ed25519')
    : name === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: name })
  ).privateKey.export({ format: 'pem', type: 'pkcs8' }) as string

/** The public key line of a new ECDSA key. */
function ecdsaLine(): string {
  const { x = '', y = '' } = freshKeyPair('P-256').publicKey.export({ format: 'jwk' })
  const point = Buffer.concat([
    Buffer.of(4),
    Buffer.from(x, 'base64url'),
    Buffer.from(y, 'base64url'),
  ])
  const type = 'ecdsa-sha2-nistp256'
  return publicKeyLine(type, Buffer.concat([string(type), string('nistp256'), string(point)]))
}

for (const type of ['ed25519', 'prime256v1'] as const) {
  testWithProgram(
    'ssh-keygen',
    `ssh-keygen reads a signed certificate (${type})`,
    async (t, keygen) => {
      const folder = sshFolder()
      t.teardown(folder.remove)
      const issuer = madeAuthority(pem(type))
      const { caPublicKey } = issuer
      const made = signed({
        authority: issuer,
        sourceAddresses: ['10.1.0.0/16', '2001:db8::/32'],
        forceCommand: 'uptime -p',
      })
      t.is(made.caPublicKey, caPublicKey)
      const { code, output } = await ran(
        keygen,
        '-L',
        '-f',
        folder.write('cert.pub', made.certificate),
      )
      t.is(code, 0, output)
      const { output: ca } = await ran(keygen, '-l', '-f', folder.write('ca.pub', caPublicKey))
      const { output: own } = await ran(keygen, '-l', '-f', folder.write('own.pub', made.publicKey))
      // Newer versions also print the bytes of unknown options.
      const lines = output
        .split('\n')
        .map((line) => line.trim().replace(/ UNKNOWN OPTION.*\(len/, ' UNKNOWN OPTION (len'))
      const at = (secs: number) => {
        const local = new Date(secs * 1000 - new Date(secs * 1000).getTimezoneOffset() * 60_000)
        return local.toISOString().slice(0, 19)
      }
      t.deepEqual(lines.slice(1), [
        'Type: ssh-ed25519-cert-v01@openssh.com user certificate',
        `Public key: ED25519-CERT ${own.split(' ')[1]}`,
        `Signing CA: ${type === 'ed25519' ? 'ED25519' : 'ECDSA'} ${ca.split(' ')[1]} (using ${caPublicKey.split(' ')[0]})`,
        `Key ID: "${KEY_ID}"`,
        'Serial: 18446744073709551615',
        `Valid: from ${at(1_900_000_000)} to ${at(1_900_000_360)}`,
        'Principals:',
        'deploy',
        'Ops.2@db_1',
        'Critical Options:',
        'force-command uptime -p',
        'source-address 10.1.0.0/16,2001:db8::/32',
        'Extensions:',
        'permit-pty',
        'target-host@svc UNKNOWN OPTION (len 15)',
        '',
      ])
      t.is(made.certificate.split(' ').at(-1), KEY_ID)
    },
  )
}

// One of 256 numbers starts with a zero byte, which some encodings omit; many tries make it likely, in the long form.
const CERTIFICATES = IS_LONG ? 1_000 : 50

for (const type of ['ed25519', 'prime256v1'] as const) {
  testWithProgram(
    'ssh-keygen',
    `each of very many certificates is valid, whatever its numbers (${type})`,
    async (t, keygen) => {
      t.timeout(240_000)
      const folder = sshFolder()
      t.teardown(folder.remove)
      const { pkcs8, caPublicKey } = madeAuthority(pem(type))
      const certificates: string[] = []
      while (certificates.length < CERTIFICATES) {
        const line = type === 'ed25519' ? null : ecdsaLine()
        certificates.push(
          signed({ authority: { pkcs8: Uint8Array.from(pkcs8), caPublicKey }, publicKey: line })
            .certificate,
        )
        // The time limits of the programs of other tests run on.
        await setImmediate()
      }
      const all = folder.write('all.pub', `${certificates.join('\n')}\n`)
      // ssh-keygen verifies the signature before it lists a certificate.
      const { output } = await ran(keygen, '-L', '-f', all)
      t.is(output.match(/invalid key.*/)?.[0], undefined)
      t.is(output.match(/Serial: /g)?.length, certificates.length)
    },
  )
}

testWithProgram(
  'ssh-keygen',
  'an authority whose private number is short is read from each form',
  async (t, keygen) => {
    const folder = sshFolder()
    t.teardown(folder.remove)
    const short = () => {
      for (;;) {
        const { privateKey } = freshKeyPair('P-256')
        const { d = '' } = privateKey.export({ format: 'jwk' })
        if (Buffer.from(d, 'base64url')[0] === 0) return privateKey
      }
    }
    const text = short().export({ format: 'pem', type: 'sec1' }) as string
    const path = folder.write('ca', text)
    const { caPublicKey } = madeAuthority(text)
    await ran(keygen, '-q', '-p', '-P', '', '-N', '', '-f', path)
    const openSsh = readFileSync(path, 'utf8')
    t.true(openSsh.startsWith('-----BEGIN OPENSSH PRIVATE KEY-----'))
    const read = madeAuthority(openSsh)
    t.is(read.caPublicKey, caPublicKey)
    t.is(signed({ authority: read }).caPublicKey, caPublicKey)
  },
)

testWithProgram(
  'ssh-keygen',
  'the private key opens as the key that was certified',
  async (t, keygen) => {
    const folder = sshFolder()
    t.teardown(folder.remove)
    const { privateKey, publicKey } = signed()
    t.regex(
      privateKey!,
      /^-----BEGIN OPENSSH PRIVATE KEY-----\n([^\n]{70}\n)+[^\n]{1,70}\n-----END/,
    )
    t.true(privateKey!.endsWith('-----END OPENSSH PRIVATE KEY-----\n'))
    const { code, output } = await ran(
      keygen,
      '-y',
      '-P',
      '',
      '-f',
      folder.write('key', privateKey!),
    )
    t.is(code, 0, output)
    t.is(output.trim(), publicKey)
  },
)

for (const type of ['ed25519', 'ecdsa'] as const) {
  testWithProgram(
    'ssh-keygen',
    `a caller's own ${type} key is certified, and stays with it`,
    async (t, keygen) => {
      const folder = sshFolder()
      t.teardown(folder.remove)
      await ran(keygen, '-q', '-t', type, '-N', '', '-C', 'mine', '-f', folder.path('key'))
      const line = readFileSync(folder.path('key.pub'), 'utf8').trim()
      const made = signed({ publicKey: line })
      t.is(made.privateKey, null)
      t.is(made.publicKey, line.replace(/mine$/, KEY_ID))
      const { output } = await ran(keygen, '-L', '-f', folder.write('c.pub', made.certificate))
      const { output: own } = await ran(keygen, '-l', '-f', folder.path('key.pub'))
      t.true(output.includes(String(own.split(' ')[1])), output)
    },
  )
}

testWithProgram(
  'ssh-keygen',
  'an authority comes in every form that ssh-keygen writes',
  async (t, keygen) => {
    for (const type of ['ed25519', 'ecdsa']) {
      for (const format of ['RFC4716', 'PEM']) {
        const folder = sshFolder()
        await ran(
          keygen,
          '-q',
          '-t',
          type,
          '-m',
          format,
          '-N',
          '',
          '-C',
          '',
          '-f',
          folder.path('ca'),
        )
        const ca = madeAuthority(readFileSync(folder.path('ca'), 'utf8'))
        t.is(ca.caPublicKey, readFileSync(folder.path('ca.pub'), 'utf8').trim())
        t.is(signed({ authority: ca }).caPublicKey, ca.caPublicKey)
        folder.remove()
      }
    }
  },
)

testWithProgram(
  'ssh-keygen',
  'an RSA, encrypted or foreign authority is refused',
  async (t, keygen) => {
    const folder = sshFolder()
    t.teardown(folder.remove)
    await ran(keygen, '-q', '-t', 'ed25519', '-N', 'secret', '-f', folder.path('encrypted'))
    await ran(keygen, '-q', '-t', 'rsa', '-b', '2048', '-N', '', '-f', folder.path('rsa'))
    const refusals = [
      ['rsa', readFileSync(folder.path('rsa'), 'utf8')],
      ['rsa', pem('rsa')],
      ['ecdsa', pem('secp384r1')],
      ['encrypted', readFileSync(folder.path('encrypted'), 'utf8')],
      ['in OpenSSH or PEM format', readFileSync(folder.path('rsa.pub'), 'utf8')],
      ['in OpenSSH or PEM format', 'nonsense'],
    ] as const
    for (const [reason, text] of refusals) {
      const made = authority({ privateKey: text })
      if (made.tag !== 'refused') return t.fail(`${reason} was accepted`)
      t.true(made.detail.includes(reason), made.detail)
    }
  },
)

test('unsupported keys are refused', (t) => {
  const rsa = `ssh-rsa ${Buffer.from('nonsense').toString('base64')}`
  const offCurve = Buffer.concat([Buffer.alloc(65).fill(4, 0, 1)])
  const part = (bytes: Uint8Array) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes])
  const point = Buffer.concat([
    part(Buffer.from('ecdsa-sha2-nistp256')),
    part(Buffer.from('nistp256')),
    part(offCurve),
  ])
  const bad = ['', 'nonsense', rsa, `ecdsa-sha2-nistp256 ${point.toString('base64')}`]
  for (const publicKey of bad) t.is(certificate(input({ publicKey })).tag, 'bad_key', publicKey)
})

test('the bytes of the authority are wiped', (t) => {
  const given = input()
  certificate(given)
  t.true(given.authority.pkcs8.every((byte) => byte === 0))
})

function listAuthority() {
  const made = authority({ privateKey: null })
  if (made.tag !== 'authority') throw new Error(made.detail)
  return made
}

function signedBy({ pkcs8, caPublicKey }: AuthorityKey, serial: bigint): string {
  const made = certificate({
    authority: { pkcs8: Uint8Array.from(pkcs8), caPublicKey },
    publicKey: null,
    keyId: 'svc:tenant:agent',
    serial: String(serial),
    nonce: new Uint8Array(32),
    principals: ['deploy'],
    targetHost: 'db1.example',
    validAfterSecs: 1_900_000_000,
    validBeforeSecs: 1_900_000_300,
    sourceAddresses: [],
    forceCommand: null,
  })
  if (made.tag !== 'certificate') throw new Error(made.tag)
  return made.certificate
}

const list = (serials: Map<string, bigint[]>, keys: string[] = []) =>
  encodeKrl({ version: 3n, generatedSecs: 1_900_000_000, comment: 'a list', serials, keys })

testWithProgram('ssh-keygen', 'a list contains exactly the revoked serials', async (t, keygen) => {
  const folder = sshFolder()
  t.teardown(folder.remove)
  const [one, other] = [listAuthority(), listAuthority()]
  const serials = [1n, 77n, 2n ** 64n - 1n, 2n ** 63n]
  const krl = list(
    new Map([
      [one.caPublicKey, [...serials, 77n].toReversed()],
      [other.caPublicKey, [5n]],
    ]),
  )
  const path = folder.write('krl', krl)
  const isRevoked = async (ca: AuthorityKey, serial: bigint) => {
    const file = folder.write('cert.pub', signedBy(ca, serial))
    const { code, output } = await ran(keygen, '-Q', '-f', path, file)
    t.is(output.includes('REVOKED'), code === 1, output)
    return code === 1
  }
  for (const serial of serials) t.true(await isRevoked(one, serial), String(serial))
  t.true(await isRevoked(other, 5n))
  t.false(await isRevoked(one, 5n))
  t.false(await isRevoked(other, 77n))
  t.false(await isRevoked(one, 78n))
  const { code, output } = await ran(keygen, '-Q', '-l', '-f', path)
  t.is(code, 0)
  t.true(output.includes('# KRL version 3') && output.includes('a list'), output)
})

testWithProgram(
  'ssh-keygen',
  'a revoked authority takes all it signed along',
  async (t, keygen) => {
    const folder = sshFolder()
    t.teardown(folder.remove)
    const [one, other] = [listAuthority(), listAuthority()]
    const path = folder.write('krl', list(new Map(), [one.caPublicKey]))
    const file = (ca: AuthorityKey) => folder.write('cert.pub', signedBy(ca, 9n))
    t.is((await ran(keygen, '-Q', '-f', path, file(one))).code, 1)
    t.is((await ran(keygen, '-Q', '-f', path, file(other))).code, 0)
  },
)

testWithProgram('ssh-keygen', 'an empty list is valid', async (t, keygen) => {
  const folder = sshFolder()
  t.teardown(folder.remove)
  const path = folder.write('krl', list(new Map()))
  const file = folder.write('cert.pub', signedBy(listAuthority(), 9n))
  t.is((await ran(keygen, '-Q', '-f', path, file)).code, 0)
})

const P = 2n ** 255n - 19n
/** Every encoding of a point of small order: canonical, past p, and with a sign where x is 0. */
const SMALL = [
  0n,
  1n,
  P - 1n,
  P,
  P + 1n,
  2707385501144840649318225287225658788936804267575313519463743609750303402022n,
  55188659117513257062467267217118295137698188065244968500265048394206261417927n,
].flatMap((y) => [encoded(y), encoded(y + 2n ** 255n)])

function encoded(y: bigint): Buffer {
  return Buffer.from(Buffer.from(y.toString(16).padStart(64, '0'), 'hex').toReversed())
}

const lineOf = (point: Uint8Array) =>
  publicKeyLine('ssh-ed25519', Buffer.concat([string('ssh-ed25519'), string(Buffer.from(point))]))

test('public keys of private keys are accepted', (t) => {
  for (let count = 0; count < 200; count += 1) {
    const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    const point = Buffer.from(x, 'base64url')
    t.true(isSoundPoint(point), point.toString('hex'))
    t.not(readPublicKey(lineOf(point)), undefined)
  }
})

test('points of small order are refused, in every encoding', (t) => {
  for (const point of SMALL) {
    t.false(isSoundPoint(point), point.toString('hex'))
    t.is(readPublicKey(lineOf(point)), undefined)
  }
})

test('encodings past p, points off the curve and other lengths are refused', (t) => {
  for (let y = P; y < 2n ** 255n; y += 1n) t.false(isSoundPoint(encoded(y)))
  // About half of all y are valid: 3 is, 2 is not.
  t.false(isSoundPoint(encoded(2n)))
  t.true(isSoundPoint(encoded(3n)))
  t.false(isSoundPoint(encoded(3n).subarray(0, 31)))
  t.false(isSoundPoint(Buffer.concat([encoded(3n), Buffer.alloc(1)])))
})
