/**
 * npm packages that some tests run and that are no dependencies of the project: programs for one platform only, or packages
 * whose own dependencies conflict with ours.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CACHE } from '../tools.js'

const run = promisify(execFile)

/**
 * The folder whose node_modules has these packages. The first call installs them.
 * @param name of the folder, unique for the list.
 * @param packages with versions: `name@1.2.3`.
 */
export async function installedPackages(
  name: string,
  packages: readonly string[],
): Promise<string> {
  const folder = join(CACHE, name)
  if (existsSync(folder)) return folder
  mkdirSync(CACHE, { recursive: true })
  const made = mkdtempSync(join(CACHE, 'installing-'))
  try {
    const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', made]
    await run('npm', ['install', ...options, ...packages], { cwd: made })
    // The first of several concurrent installations stays.
    if (!existsSync(folder)) renameSync(made, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  return folder
}
