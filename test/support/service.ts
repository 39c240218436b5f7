/** The whole service, for tests over HTTP. */
import type { Service } from '../../runtime/process/startup.js'
import { type Api, apiOf } from './api.js'
import { CHAINS, type PairProfile, PROFILES, type Profile, WITH_MAIL } from './fleet/profiles.js'
import { chainEnvironment, sharedMarket } from './commerce/market.js'
import { partOf, pooledFleet, THROUGH, throughProxy } from './fleet/through.js'
import { DEFAULT_TRANSPORT, THREADS } from './fleet/transports.js'
import { sharedMail } from './operations/letters.js'
import { serviceEnds } from './endings.js'
import type { TestService, TestServiceOptions } from './service/settings.js'
import { trust } from './service/trust.js'

export { freePort, TEST_DEFAULTS, twoFreePorts } from './service/settings.js'
export type { TestService, TestServiceOptions, Transport } from './service/settings.js'
export { DEFAULT_TRANSPORT, REPEATED_OVER, TRANSPORTS } from './fleet/transports.js'

/**
 * A service of the runner (fleet/pool.ts) until `end()` or the end of the file, on its own database, in a process that
 * serves one test file after another. Outside of the runner, and with options that only a service in this process has,
 * `ownService()`.
 */
export async function testService(options: TestServiceOptions = {}): Promise<TestService> {
  const service = await opened(options)
  return { ...service, end: serviceEnds(() => service.end()) }
}

async function opened(options: TestServiceOptions): Promise<TestService> {
  if (options.peerOf === undefined) {
    const through = await throughProxy(options, (fleet) => own({ peerOf: fleet }))
    if (through?.ca !== undefined) trust(through.ca)
    return through ?? (await shared(options)) ?? own(options)
  }
  return own(options)
}

/** A service that several test files use at the same time. Those that change or count what all of them see use the above. */
export async function sharedService(
  profile: Profile,
  options: Pick<TestServiceOptions, 'transport' | 'host' | 'isPair'> = {},
): Promise<TestService> {
  return testService({
    ...options,
    environment: await environmentOf(profile),
    isShared: true,
    by: profile,
  })
}

/** A service that several test files use, and its API. */
export async function sharedApi(
  ...shared: Parameters<typeof sharedService>
): Promise<{ readonly api: Api; readonly running: TestService }> {
  const running = await sharedService(...shared)
  return { api: apiOf(running), running }
}

/** Two processes of a deployment, which several test files use at the same time. */
export async function sharedPair(
  profile: PairProfile,
): Promise<readonly [TestService, TestService]> {
  const first = await sharedService(profile, { isPair: true })
  const { secondUrl: baseUrl } = first
  if (baseUrl !== undefined) return [first, { ...first, baseUrl, end: () => Promise.resolve() }]
  return [first, await testService({ peerOf: first, environment: await environmentOf(profile) })]
}

async function environmentOf(profile: Profile): Promise<Record<string, string>> {
  const mail = WITH_MAIL.has(profile) ? (await sharedMail()).environment : {}
  const options = CHAINS[profile]
  const chain = options === undefined ? {} : chainEnvironment(await sharedMarket(), options)
  return { ...PROFILES[profile], ...mail, ...chain }
}

/** For tests that call the actors of a service: in the process of the test, or next to the processes behind a proxy. */
export async function serviceWithActors(options: TestServiceOptions): Promise<TestService> {
  if (THROUGH !== undefined) return testService(options)
  const service = await own(options)
  return { ...service, end: serviceEnds(() => service.end()) }
}

/** Loaded when needed: the modules of a service cost more time than most tests. */
async function own(options: TestServiceOptions): Promise<TestService> {
  const { ownService } = await import('./service/own-service.js')
  return ownService(options)
}

/** The socket of the pool of the runner. */
const POOL = process.env['TEST_SERVICES']
/** Modes that change the process of a service or its database. */
const IS_ALONE =
  THREADS !== undefined ||
  process.env['TEST_ENGINE'] !== undefined ||
  process.env['RECORD_EXAMPLES'] !== undefined
/** Settings with which a test has its own files, database or listener. */
const OWN =
  /^(DATABASE_URL|SVC_DATABASE__.*URL|SVC_SERVER__(PORT|EGRESS_PORT|HOST|TRANSPORT|TLS__.*)|SVC_RUNTIME_PLANE)$/

/** Undefined where it cannot be a service of the runner. */
async function shared({
  transport = DEFAULT_TRANSPORT,
  host,
  environment = {},
  clock,
  onLog,
  isShared,
  by = process.env['TEST_FILE'],
  isPair,
}: TestServiceOptions): Promise<TestService | undefined> {
  if (POOL === undefined || IS_ALONE || clock !== undefined || onLog !== undefined) return undefined
  if (Object.keys(environment).some((name) => OWN.test(name))) return undefined
  const found = await pooledFleet(POOL, { environment, host, transport, isShared, by, isPair })
  if (found.ca !== undefined) trust(found.ca)
  return { ...found, service: partOf<Service>('service', {}), engine: undefined }
}
