/** Verifies an export of the audit chain offline. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../../runtime/main.js', import.meta.url))

/** Runs `svc audit verify` on a file with the given lines. */
export async function verifyOffline(
  lines: readonly string[],
  ...options: readonly string[]
): Promise<{ code: number; out: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-audit-'))
  const file = join(folder, 'export.jsonl')
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
  try {
    return await new Promise((resolve) => {
      execFile(
        process.execPath,
        [main, 'audit', 'verify', file, ...options],
        (error, stdout, stderr) => {
          const code = error === null ? 0 : Number(error.code)
          resolve({ code, out: (stdout + stderr).trim() })
        },
      )
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
