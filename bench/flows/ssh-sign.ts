/** SSH certificates: ours, with a key pair each, compared with `ssh-keygen`. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sshCertificatesPool } from '../../actors/vault/ssh-certificates/needs.js'
import * as compute from '../../actors/vault/ssh-certificates/compute.js'
import { openPool } from '../../runtime/kernel/threads/pool.js'
import { compare, publish, repeat, saturate } from '../harness.js'

const folder = mkdtempSync(join(tmpdir(), 'svc-bench-ssh-'))
const at = (name: string) => join(folder, name)
const keygen = (...args: string[]) => execFileSync('ssh-keygen', args, { stdio: 'ignore' })

const made = compute.authority({ privateKey: null })
if (made.tag !== 'authority') throw new Error(made.detail)
const { pkcs8, caPublicKey } = made
/** As the service asks for it: the bytes of the authority are wiped with each certificate. */
const input = (): compute.CertificateInput => ({
  authority: { pkcs8: Uint8Array.from(pkcs8), caPublicKey },
  publicKey: null,
  keyId: 'svc:0198a1b2-0000-7000-8000-000000000000:0198a1b2-0000-7000-8000-000000000001',
  serial: '12974638201758493021',
  nonce: new Uint8Array(randomBytes(32)),
  principals: ['deploy'],
  targetHost: 'db1.example.com',
  validAfterSecs: 1_900_000_000,
  validBeforeSecs: 1_900_000_300,
  sourceAddresses: [],
  forceCommand: null,
})

const pool = openPool<typeof compute>(sshCertificatesPool(1))
try {
  keygen('-q', '-t', 'ed25519', '-N', '', '-f', at('ca'))
  keygen('-q', '-t', 'ed25519', '-N', '', '-f', at('key'))
  await publish(
    await compare({
      name: 'SSH certificate, ed25519',
      reference: {
        name: 'ssh-keygen -s, a process each, no key pair',
        run: (ms) =>
          repeat(ms, () =>
            keygen('-q', '-s', at('ca'), '-I', 'id', '-n', 'deploy', '-V', '+5m', at('key.pub')),
          ),
      },
      contenders: [
        {
          name: 'in process, with a key pair',
          target: 30,
          run: (ms) => repeat(ms, () => compute.certificate(input())),
        },
        {
          name: 'through a pool of one thread, 32 in flight',
          run: (ms) => saturate(ms, 32, () => pool.run('certificate', input())),
        },
      ],
    }),
  )
} finally {
  await pool.close()
  rmSync(folder, { recursive: true, force: true })
}
