/** A kms in the test process, with real keys and a real socket, which can be stopped. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { generateKeyDirectory } from '../../../storage/platform/kms/key-directory.js'
import { keyPaths } from '../../../storage/platform/kms/key-files.js'
import { serveKms } from '../../../storage/platform/kms/server.js'

export interface TestKms {
  /** SVC_KMS__ variables for a service. */
  readonly environment: Readonly<Record<string, string>>
  /** Simulates a killed process. The keys are kept. */
  interrupt(): Promise<void>
  /** Simulates a stopped process (SIGSTOP): connections are accepted, without responses. */
  freeze(): Promise<void>
  resume(): Promise<void>
  end(): Promise<void>
}

export async function testKms(): Promise<TestKms> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-kms-'))
  const keysDirectory = join(folder, 'keys')
  const socketPath = join(folder, 'kms.sock')
  const random = systemRandom(systemClock)
  await generateKeyDirectory(keysDirectory, random)
  const paths = keyPaths(keysDirectory)
  const serve = () =>
    serveKms({ socketPath, keysDirectory, random, log: silentLogger, replace: true })
  let server: Awaited<ReturnType<typeof serve>> | undefined = await serve()
  const interrupt = async () => {
    await server?.close()
    server = undefined
  }
  let silent: Server | undefined
  return {
    environment: {
      SVC_KMS__SOCKET_PATH: socketPath,
      SVC_KMS__SERVER_PUBLIC_KEY_PATH: paths.serverPublic,
      SVC_KMS__CLIENT_PRIVATE_KEY_PATH: paths.clientPrivate,
    },
    interrupt,
    async freeze() {
      await interrupt()
      silent = createServer(() => undefined).listen(socketPath)
      await once(silent, 'listening')
    },
    async resume() {
      silent?.close()
      silent = undefined
      server ??= await serve()
    },
    async end() {
      silent?.close()
      await interrupt()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
