/** Wrapping over the kms socket, with the kms in a separate process, and sealing with its keys. */
import { createCipheriv, createSecretKey, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLocalKms } from '../../runtime/process/embedded-kms.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { openKms } from '../../storage/platform/kms/client.js'
import { masterKeys } from '../../storage/platform/kms/master-keys.js'
import { compare, publish, saturate } from '../harness.js'

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-kms-'))
const local = await startLocalKms({ dataDir, log: silentLogger })
const kms = await openKms({
  socketPath: local.settings.socket_path,
  serverPublicKeyPath: local.settings.server_public_key_path,
  clientPrivateKeyPath: local.settings.client_private_key_path,
  log: silentLogger,
  clock: systemClock,
})
const context = 'data_key:018f2d5e-7c1a-7b34-9a57-3e6b1c2d4f52:1'
const plaintext = randomBytes(32)
const wrapped = await kms.wrap(context, plaintext)
const inMemory = masterKeys([{ version: 1, bytes: randomBytes(32) }], systemRandom(systemClock))
const bareKey = createSecretKey(randomBytes(32))
const bare = async () => {
  const cipher = createCipheriv('aes-256-gcm', bareKey, randomBytes(12))
  cipher.update(plaintext)
  cipher.final()
}

try {
  await publish(
    await compare({
      name: 'wrap a data key of 32 bytes',
      reference: { name: 'AES-256-GCM alone', run: (ms) => saturate(ms, 64, bare) },
      contenders: [
        {
          name: 'master key in this process',
          run: (ms) => saturate(ms, 64, async () => inMemory.wrap(context, plaintext)),
        },
        {
          name: 'kms, 64 in flight',
          run: (ms) => saturate(ms, 64, () => kms.wrap(context, plaintext)),
        },
        {
          name: 'kms, 1 in flight',
          run: (ms) => saturate(ms, 1, () => kms.wrap(context, plaintext)),
        },
        {
          name: 'kms unwrap, 64 in flight',
          run: (ms) => saturate(ms, 64, () => kms.unwrap(context, wrapped)),
        },
      ],
    }),
  )
} finally {
  await kms.close()
  await local.stop()
  await rm(dataDir, { recursive: true, force: true })
}
