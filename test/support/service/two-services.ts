/**
 * Two service processes with one database, one issuer and the keys of one kms. They share nothing
 * else.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLocalKms } from '../../../runtime/process/embedded-kms.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { type Api, apiOf } from '../api.js'
import { testService } from '../service.js'

export async function twoServices(
  more: Readonly<Record<string, string>> = {},
): Promise<{ first: Api; second: Api; end(): Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-two-'))
  const kms = await startLocalKms({ dataDir, log: silentLogger })
  const environment = {
    SVC_KMS__SOCKET_PATH: kms.settings.socket_path,
    SVC_KMS__SERVER_PUBLIC_KEY_PATH: kms.settings.server_public_key_path,
    SVC_KMS__CLIENT_PRIVATE_KEY_PATH: kms.settings.client_private_key_path,
    ...more,
  }
  const undo = async () => {
    await kms.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  const one = await testService({ environment }).catch(async (error: unknown) => {
    await undo()
    throw error
  })
  const other = await testService({
    beside: one,
    environment: { ...environment, SVC_OIDC__ISSUER_URL: one.baseUrl },
  })
  const [first, second] = [apiOf(one), apiOf(other)]
  return {
    first,
    second,
    async end() {
      await Promise.all([first.close(), second.close()])
      await other.end()
      await one.end()
      await undo()
    },
  }
}
