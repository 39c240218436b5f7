/** Revocation lists, read by OpenSSH itself. */
import {
  type AuthorityKey,
  authority,
  certificate,
} from '../../../../actors/vault/ssh-certificates/compute.js'
import { encodeKrl } from '../../../../actors/vault/ssh-certificates/krl.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { ran, sshFolder } from '../../../support/vault/ssh.js'

function madeAuthority() {
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
  const [one, other] = [madeAuthority(), madeAuthority()]
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
    const [one, other] = [madeAuthority(), madeAuthority()]
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
  const file = folder.write('cert.pub', signedBy(madeAuthority(), 9n))
  t.is((await ran(keygen, '-Q', '-f', path, file)).code, 0)
})
