/**
 * Installs the packages of test/tools/package.json into .cache/tools, unless they are there, and runs one of their programs.
 * They are apart because only tests, lint and format need them.
 *
 *   node test/tools/run.mjs [PROGRAM [arguments ...]]
 */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const cache = join(here, '..', '..', '.cache')
const tools = join(cache, 'tools')
const [program, ...args] = process.argv.slice(2)

if (!isInstalled()) install()
if (program !== undefined) {
  const { status, error } = spawnSync(join(tools, 'node_modules', '.bin', program), args, {
    stdio: 'inherit',
  })
  if (error) throw error
  process.exitCode = status ?? 1
}

function isInstalled() {
  const installed = join(tools, 'package-lock.json')
  return existsSync(installed) && readFileSync(installed, 'utf8') === lock()
}

function lock() {
  return readFileSync(join(here, 'package-lock.json'), 'utf8')
}

/** The first of several concurrent installations stays. */
function install() {
  mkdirSync(cache, { recursive: true })
  const made = mkdtempSync(join(cache, 'installing-'))
  try {
    for (const name of ['package.json', 'package-lock.json']) {
      copyFileSync(join(here, name), join(made, name))
    }
    process.stderr.write('installing the tools of the tests (npm ci, no install scripts) ...\n')
    const options = ['--prefix', made, '--ignore-scripts', '--include=optional', '--no-audit']
    const { status, stderr, error } = spawnSync('npm', ['ci', ...options], {
      cwd: made,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`npm ci of ${here}: ${stderr ?? ''}`, { cause: error })
    if (isInstalled()) return
    rmSync(tools, { recursive: true, force: true })
    renameSync(made, tools)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}
