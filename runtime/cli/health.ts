/**
 * `svc health`: asks the listener of this configuration for its health, for container health checks and supervisors. The
 * certificate is verified for the host of the issuer, with `server.tls.ca_pem_path` if it is set.
 */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { type Command, Option } from 'commander'
import { Client } from 'undici'
import { loadSettings } from '../process/configuration/load-settings.js'
import type { Settings } from '../process/configuration/settings.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { printedFailures } from '../kernel/config/print.js'
import { output } from './output.js'
import { resultText } from './target.js'

const PROBES = ['live', 'ready', 'startup'] as const
const EXIT_UNHEALTHY = 1
const EXIT_CONFIGURATION = 78
const WITHIN_MS = 5_000

/** Adds `health` to the program. */
export function healthCommand(program: Command): void {
  program
    .command('health')
    .description('ask the service of this configuration for its health; exits with 0 or 1')
    .addOption(new Option('--probe <probe>', 'which probe').choices(PROBES).default('ready'))
    .option('--json', 'as JSON')
    .action(async ({ probe, json = false }: { probe: (typeof PROBES)[number]; json?: boolean }) => {
      const loaded = loadSettings({
        environment: readEnvironment(),
        cwd: process.cwd(),
        uid: process.getuid?.(),
        servesPlane: false,
      })
      if (loaded.tag === 'refused') {
        process.stderr.write(`${printedFailures(loaded.failures)}\n`)
        process.exitCode = EXIT_CONFIGURATION
        return
      }
      try {
        const status = await statusOf(loaded.settings, probe)
        output(`${resultText(json, { probe, status }, `${probe}: ${status}`)}\n`)
        process.exitCode = status === 200 ? 0 : EXIT_UNHEALTHY
      } catch (error) {
        process.stderr.write(`svc health: ${error instanceof Error ? error.message : error}\n`)
        process.exitCode = EXIT_UNHEALTHY
      }
    })
}

/** @throws when the listener does not answer, or its certificate is not valid for the issuer. */
async function statusOf({ server, oidc }: Settings, probe: string): Promise<number> {
  const { host, hostname } = new URL(oidc.issuer_url)
  const isTls = server.transport !== 'plain_http'
  const caPath = server.tls?.ca_pem_path
  const client = new Client(`${isTls ? 'https' : 'http'}://${addressOf(server)}`, {
    allowH2: true,
    connect: {
      // A certificate may be for an address, which TLS does not send as a name (RFC 6066 section 3).
      ...(isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? { servername: hostname } : {}),
      timeout: WITHIN_MS,
      ...(caPath === undefined ? {} : { ca: readFileSync(caPath) }),
    },
    headersTimeout: WITHIN_MS,
    bodyTimeout: WITHIN_MS,
  })
  try {
    const path = `/health/${probe}`
    const answer = await client.request({ method: 'GET', path, headers: { host } })
    await answer.body.dump()
    return answer.statusCode
  } finally {
    await client.destroy()
  }
}

/** Where the listener is called from this machine. */
function addressOf({ host, port }: Settings['server']): string {
  if (host === '0.0.0.0') return `127.0.0.1:${port}`
  if (host === '::') return `[::1]:${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
