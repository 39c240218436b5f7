/** A database in use before `svc migrate finish`: processes of the release before can still run on it. */
import { Client } from 'pg'
import type { FreshDatabase } from './database.js'

/** Undoes the finishing migrations of a fresh database. */
export async function unfinish({ url }: Pick<FreshDatabase, 'url'>): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`create or replace function svc_events_in_log() returns boolean
      language sql immutable parallel safe as $$ select false $$`)
    await client.query(`delete from svc_migrations where name ~ '^\\d{4}_finish_'`)
  } finally {
    await client.end()
  }
}
