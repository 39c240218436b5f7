/** A PostgreSQL that belongs to one test file, so that the file may take it away. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger } from '../../runtime/kernel/log.js'

export interface OwnPostgres {
  /** Of the role of the service; migrated. The same before and after an outage. */
  readonly url: string
  stop(): Promise<void>
  start(): Promise<void>
  /** One statement of a superuser, in the database of the service. */
  ask<Row extends object>(text: string): Promise<Row[]>
  /** Stops it and removes its files. */
  end(): Promise<void>
}

export async function ownPostgres(): Promise<OwnPostgres> {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-own-'))
  const run = () =>
    startEmbeddedPostgres({ dataDir, log: silentLogger, durable: false, connectionsMax: 60 })
  let server = await run()
  const { url, superuserUrl, folder } = server
  await runMigrations({ url, log: silentLogger })
  const inside = new URL(superuserUrl)
  inside.pathname = new URL(url).pathname
  return {
    url,
    stop: () => server.stop(),
    async start() {
      server = await run()
    },
    async ask<Row extends object>(text: string) {
      const client = new Client({ connectionString: inside.href, application_name: 'test' })
      await client.connect()
      try {
        return (await client.query<Row>(text)).rows
      } finally {
        await client.end()
      }
    },
    async end() {
      await server.stop()
      for (const path of [folder, dataDir]) rmSync(path, { recursive: true, force: true })
    },
  }
}
