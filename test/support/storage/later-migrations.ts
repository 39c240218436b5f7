/** The migrations of this build with one more, as the next release would have it. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MIGRATIONS_FOLDER } from '../../../storage/platform/schema-version.js'

export const LATER = '9000_later'

/** What a release adds: a table, and columns of tables that this build writes. */
const ADDS = `-- Old processes may keep running: only adds a table, and columns with defaults.
create table later (id uuid primary key);
alter table applications add column later text not null default 'unknown';
alter table refresh_families add column later integer;
`

export interface LaterMigrations {
  readonly folder: URL
  remove(): void
}

/** Writes them into a temporary folder. */
export function laterMigrations(): LaterMigrations {
  const folder = mkdtempSync(join(tmpdir(), 'svc-later-'))
  addLater(folder)
  return {
    folder: pathToFileURL(`${folder}/`),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Writes them into an existing folder. */
export function addLater(folder: string): void {
  cpSync(fileURLToPath(MIGRATIONS_FOLDER), folder, { recursive: true })
  writeFileSync(join(folder, `${LATER}.sql`), ADDS)
}
