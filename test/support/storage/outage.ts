/** A PostgreSQL for one test file, which can stop it. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { runMigrations } from '../../../migrations/main.js'
import { startEmbeddedPostgres } from '../../../runtime/embedded/postgres.js'
import { silentLogger } from '../../../runtime/kernel/log.js'

export interface OwnPostgres {
  /** URL of the service role, migrated. It is the same before and after an outage. */
  readonly url: string
  stop(): Promise<void>
  start(): Promise<void>
  /** Freezes the server: connections are not refused and get no responses. @returns a function that resumes it. */
  freeze(): Promise<() => void>
  /** Opens a connection as superuser, for a fault in which the server accepts no new one. */
  open(): Promise<Client>
  /** Runs a statement as superuser in the database of the service. */
  ask<Row extends object>(text: string): Promise<Row[]>
  /** Stops it and removes its files. */
  end(): Promise<void>
}

export interface OwnPostgresOptions {
  /** The folder for its files. */
  readonly within?: string
  /** For a server that is to survive a crash. */
  readonly durable?: boolean
  /** Variables of its process, such as variables of a clock. */
  readonly environment?: Readonly<Record<string, string>>
}

export async function ownPostgres(options: OwnPostgresOptions = {}): Promise<OwnPostgres> {
  const { within = tmpdir(), durable = false, environment } = options
  const dataDir = mkdtempSync(join(within, 'svc-own-'))
  // A root process runs the server as another user, who must be able to enter a folder given.
  if (options.within !== undefined) chmodSync(dataDir, 0o711)
  const run = () =>
    startEmbeddedPostgres({
      dataDir,
      log: silentLogger,
      durable,
      connectionsMax: 60,
      environment,
    })
  let server = await run()
  const { url, superuserUrl, folder } = server
  await runMigrations({ url, log: silentLogger })
  const inside = new URL(superuserUrl)
  inside.pathname = new URL(url).pathname
  async function open() {
    const client = new Client({ connectionString: inside.href, application_name: 'test' })
    // A server that ends with a statement ends the connection too.
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  async function ask<Row extends object>(text: string) {
    const client = await open()
    try {
      return (await client.query<Row>(text)).rows
    } finally {
      await client.end()
    }
  }
  return {
    url,
    stop: () => server.stop(),
    async start() {
      server = await run()
    },
    open,
    ask,
    async freeze() {
      const rows = await ask<{ pid: number }>(
        'select pid from pg_stat_activity where pid <> pg_backend_pid()',
      )
      const pids = [server.pid, ...rows.map(({ pid }) => pid)]
      const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
        for (const pid of pids) {
          try {
            process.kill(pid, name)
          } catch {
            // A temporary worker that has exited.
          }
        }
      }
      signal('SIGSTOP')
      return () => signal('SIGCONT')
    },
    async end() {
      await server.stop()
      for (const path of [folder, dataDir]) rmSync(path, { recursive: true, force: true })
    },
  }
}
