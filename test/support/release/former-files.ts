/** The migrations as they were before files among them were mended (`MENDED` in storage/platform/schema-version.ts). */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { ExecutionContext } from 'ava'
import { MIGRATIONS_FOLDER } from '../../../storage/platform/schema-version.js'

/** @returns a temporary folder. */
export async function formerFiles(t: ExecutionContext): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-former-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await cp(fileURLToPath(MIGRATIONS_FOLDER), folder, { recursive: true })
  const change = async (name: string, ...edits: readonly (readonly [RegExp, string])[]) => {
    const path = join(folder, name)
    let text = await readFile(path, 'utf8')
    for (const [from, to] of edits) text = text.replace(from, to)
    await writeFile(path, text)
  }
  await change(
    '0096_egress_blocks.sql',
    [/ 0102 announces through .*/, ''],
    [/perform pg_notify/, 'perform svc_announce'],
  )
  await change('0102_announcements.sql', [
    /create or replace function svc_announce_egress[^;]*;[^;]*;[^;]*;\nend\n\$\$;\n\n/,
    '',
  ])
  return pathToFileURL(`${folder}/`)
}
