/** The settings and ports of services under test. */
import { createServer } from 'node:net'
import { threadId } from 'node:worker_threads'

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

/**
 * A free port that stays free until its use: outside of the system's ephemeral ports, and different
 * from those of concurrent test files.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const at = (process.pid + threadId) * PORTS.ofThread + portsTaken++
    const port = PORTS.first + (at % PORTS.count)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
