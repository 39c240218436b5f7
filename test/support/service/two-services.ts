/**
 * Two service processes with one database, one issuer and the keys of one kms. They share nothing
 * else.
 */
import { type Api, apiOf } from '../api.js'
import type { PairProfile } from '../fleet/profiles.js'
import { sharedPair, testService, type TestService } from '../service.js'

export type TwoServices = { first: Api; second: Api; end(): Promise<void> }

/** With special settings. */
export async function twoServices(
  more: Readonly<Record<string, string>> = {},
): Promise<TwoServices> {
  const one = await testService({ environment: more, isPair: true })
  if (one.secondUrl !== undefined) {
    return both(one, { ...one, baseUrl: one.secondUrl, end: () => Promise.resolve() })
  }
  const environment = { ...more, SVC_OIDC__ISSUER_URL: one.baseUrl }
  return both(one, await testService({ peerOf: one, environment }))
}

/** The pair of a profile, which other test files use too. */
export async function sharedTwo(profile: PairProfile = 'people'): Promise<TwoServices> {
  return both(...(await sharedPair(profile)))
}

function both(one: TestService, other: TestService): TwoServices {
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
