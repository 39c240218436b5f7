/** Services under test: what they are, their settings and ports. */
import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Service } from '../../../runtime/process/startup.js'
import type { FreshDatabase } from '../storage/database.js'
import type { HostileEngine } from '../storage/hostile-engine.js'
import type { TestKms } from '../storage/kms.js'

export type Transport = 'plain_http' | 'tls_http1' | 'tls' | 'tls_h2_only'

/** Hosts of the certificate of tests. */
export type TestHost = 'localhost' | '127.0.0.1'

export interface TestService {
  readonly service: Service
  readonly db: FreshDatabase
  /** With TEST_ENGINE=hostile, what is between the service and the database. */
  readonly engine: HostileEngine | undefined
  readonly kms: TestKms
  /** The address of the service. */
  readonly baseUrl: string
  /** The address of a second process on the same database: `isPair`, where the runner has started it. */
  readonly secondUrl?: string | undefined
  /** Equal to `baseUrl`, except for a second service, which shares the first one's issuer. */
  readonly issuer: string
  /** SVC_ variables that every process of the deployment has, besides variables of the database and of the kms. */
  readonly processEnvironment?: Readonly<Record<string, string>> | undefined
  /** PEM of a CA, to be trusted by TLS clients. Undefined for plain_http. */
  readonly ca: string | undefined
  /** Stops the service and removes its database. @throws when it has logged a planted secret. */
  end(): Promise<void>
}

export interface TestServiceOptions {
  readonly transport?: Transport | undefined
  /** The host of its URL. Browsers share cookies between the ports of a host. Default: `localhost`. */
  readonly host?: TestHost | undefined
  /** SVC_ variables that override the defaults below. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** Replaces the system clock on the main thread. */
  readonly clock?: Clock | undefined
  /** Receives each line of the log. */
  readonly onLog?: ((line: string) => void) | undefined
  /** Other test files with the same options use the service and its database too: `sharedService()`. */
  readonly isShared?: boolean | undefined
  /** For the count of starts: the profile. Default: the test file. */
  readonly by?: string | undefined
  /** The runner starts a second process. */
  readonly isPair?: boolean | undefined
  /** The first process of a deployment: this one shares its database. */
  readonly peerOf?: TestService | undefined
}

/**
 * Settings that let a test machine finish in milliseconds. Everything else is real. Rate limits are
 * off, because tests send hundreds of requests from one address. Tests of rate limits turn them on.
 */
export const TEST_DEFAULTS = {
  SVC_SERVER__HOST: '127.0.0.1',
  SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
  SVC_SERVER__GATEWAY_THREADS: '1',
  SVC_CHALLENGE__POW_DIFFICULTY_BITS: '8',
  SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
  SVC_AUTH__ARGON2_MEMORY_KIB: '64',
  SVC_AUTH__ARGON2_ITERATIONS: '1',
  SVC_DATABASE__MAX_CONNECTIONS: '8',
  SVC_DATABASE__MIN_CONNECTIONS: '0',
  SVC_DATABASE__IDENTITY_MAX_CONNECTIONS: '2',
  // Tests send mail to one address repeatedly. Tests of these limits set them.
  SVC_EMAIL__PER_ADDRESS_PER_DAY_MAX: '1000',
  SVC_EMAIL__PER_ADDRESS_GAP_SECS: '0',
  SVC_EMAIL__PER_SANDBOX_PER_DAY_MAX: '1000',
  // On by default outside production. A test turns on what it needs.
  SVC_PASSKEY__ENABLED: 'false',
  SVC_USER_SELF_SERVICE__ENABLED: 'false',
  SVC_EMAIL_OTP__ENABLED: 'false',
  SVC_MAGIC_LINK__ENABLED: 'false',
  SVC_INVITATIONS__ENABLED: 'false',
}

/** Below the system's ephemeral ports (32768 and up on Linux). */
const PORTS = { first: 12_000, count: 20_000, ofThread: 50 }
let portsTaken = 0
const returned: number[] = []

/** Lets a later server of this file have the port of one that has ended. */
export function returnPort(port: number): void {
  returned.push(port)
}

/**
 * A free port that stays free until its use: outside of the system's ephemeral ports, and one that no other process of the run
 * has had.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = returned.shift() ?? nextPort()
    if (await isFree(port)) return port
  }
}

/** The first of two free ports, one behind the other. */
export async function twoFreePorts(): Promise<number> {
  for (;;) {
    const port = await freePort()
    if ((await freePort()) === port + 1) return port
  }
}

function nextPort(): number {
  for (;;) {
    const at = (process.pid + threadId) * PORTS.ofThread + portsTaken++
    const port = PORTS.first + (at % PORTS.count)
    if (isFirst(port)) return port
  }
}

/** The processes of a run share a folder, and one of them makes the file of a port. */
function isFirst(port: number): boolean {
  const folder = process.env['TEST_PORTS']
  if (folder === undefined) return true
  try {
    closeSync(openSync(join(folder, String(port)), 'wx'))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
