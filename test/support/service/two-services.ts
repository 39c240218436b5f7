/**
 * Two service processes with one database, one issuer and the keys of one kms. They share nothing
 * else.
 */
import { type Api, apiOf } from '../api.js'
import { testService } from '../service.js'

export async function twoServices(
  more: Readonly<Record<string, string>> = {},
): Promise<{ first: Api; second: Api; end(): Promise<void> }> {
  const one = await testService({ environment: more })
  const environment = { ...more, SVC_OIDC__ISSUER_URL: one.baseUrl }
  const other = await testService({ beside: one, environment })
  const [first, second] = [apiOf(one), apiOf(other)]
  return {
    first,
    second,
    async end() {
      await Promise.all([first.close(), second.close()])
      await other.end()
      await one.end()
    },
  }
}
