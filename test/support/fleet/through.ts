/**
 * Flows that run against several processes behind a proxy instead of a service in the process of the test. The runner
 * sets TEST_THROUGH and TEST_COORDINATION, and shares one fleet by TEST_FLEET.
 */
import type { Service } from '../../../runtime/startup.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openDatabase } from '../../../storage/platform/database.js'
import type { TestService, TestServiceOptions } from '../service/settings.js'
import { type FreshDatabase, sameUrls, testPoolSettings } from '../storage/database.js'
import { COORDINATIONS } from './coordination.js'
import { startFleet } from './fleet.js'
import { PROXIES } from './proxy.js'

/** A fleet of the runner, for flows that need no settings of their own. */
export type SharedFleet = {
  readonly baseUrl: string
  readonly ca: string
  readonly url: string
  readonly superuserUrl: string
}

type Through = TestService & { readonly ca: string }

/** Undefined where TEST_THROUGH is not set. @throws for options that only a service in this process has. */
export async function throughProxy({
  environment = {},
  ...others
}: TestServiceOptions): Promise<Through | undefined> {
  const through = PROXIES.find((name) => name === process.env['TEST_THROUGH'])
  if (through === undefined) return undefined
  for (const [name, value] of Object.entries(others)) {
    if (value !== undefined) throw new Error(`${name} needs a service in the process of the test`)
  }
  const shared = process.env['TEST_FLEET']
  if (shared !== undefined && Object.keys(environment).length === 0) {
    return sharedService(JSON.parse(shared) as SharedFleet)
  }
  const coordination = COORDINATIONS.find((name) => name === process.env['TEST_COORDINATION'])
  const fleet = await startFleet({ through, coordination, environment })
  const { baseUrl, issuer, ca, db, kms, end } = fleet
  return { service: absent('service'), baseUrl, issuer, ca, db, kms, engine: undefined, end }
}

async function sharedService({ baseUrl, ca, url, superuserUrl }: SharedFleet): Promise<Through> {
  const settings = testPoolSettings
  const urls = sameUrls(url)
  const database = await openDatabase({ settings, urls, plane: 'all', log: silentLogger })
  const drop = () => database.close()
  const db: FreshDatabase = { url, superuserUrl, database, settings, urls, drop }
  return {
    service: absent('service'),
    kms: absent('kms'),
    engine: undefined,
    baseUrl,
    issuer: baseUrl,
    ca,
    db,
    end: drop,
  }
}

/** A part that only a service in the process of the test has. */
function absent<Part extends Service | TestService['kms']>(name: string): Part {
  return new Proxy({} as Part, {
    get(_, member) {
      throw new Error(`${name}.${String(member)} needs a service in the process of the test`)
    },
  })
}
