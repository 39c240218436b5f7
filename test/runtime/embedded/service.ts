/** A process with an embedded server, for tests that kill it. Its output is lines of JSON. */
import { silentLogger } from '../../../runtime/kernel/log.js'
import { startEmbeddedPostgres } from '../../../runtime/embedded/postgres.js'

const dataDir = process.argv[2] ?? ''
try {
  const server = await startEmbeddedPostgres({ dataDir, log: silentLogger })
  const { url, pid, adopted } = server
  process.stdout.write(`${JSON.stringify({ url, pid, adopted })}\n`)
  process.once('SIGTERM', () => server.stop().then(() => process.exit(0)))
  setInterval(() => undefined, 60_000)
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: (error as Error).message })}\n`)
  process.exitCode = 1
}
