/** What the installed packages weigh, and what the step after their installation removes. */
import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { PINNED_NATIVE_SHA256 } from '../../gateway/transports/native.js'

const MEBIBYTES_MAX = 350
const { platform, arch, versions } = process
const NATIVE = `uws_${platform}_${arch}_`

type Entry = { readonly hasInstallScript?: boolean }

function clone(t: ExecutionContext): { root: string; files(): string[] } {
  const root = mkdtempSync(join(tmpdir(), 'svc-packages-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const natives = ['115', '127', '137'].map((abi) => `uWebSockets.js/${NATIVE}${abi}.node`)
  for (const path of [
    ...natives,
    'uWebSockets.js/LICENSE',
    'uWebSockets.js/docs/index.html',
    `uWebSockets.js/${NATIVE}83.node`,
    'uWebSockets.js/uws_win32_x64_115.node',
    'sodium-native/prebuilds/ios-x64/sodium-native.bare',
    `sodium-native/prebuilds/${platform}-${arch}/sodium-native.node`,
    'pg/index.d.ts',
    'pg/index.js',
    'pg/index.js.map',
    'ava/package.json',
    'typescript/package.json',
  ]) {
    const at = join(root, 'node_modules', path)
    mkdirSync(dirname(at), { recursive: true })
    writeFileSync(at, '')
  }
  writeFileSync(join(root, 'package-lock.json'), '{}')
  mkdirSync(join(root, 'runtime'))
  for (const file of ['runtime/launch.mjs', 'runtime/trim-packages.mjs']) {
    writeFileSync(join(root, file), readFileSync(file))
  }
  const files = () =>
    readdirSync(join(root, 'node_modules'), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.\w+$|LICENSE|\/\.svc/.test(path) && path !== 'uWebSockets.js')
      .toSorted()
  return { root, files }
}

test(`the packages of the project have at most ${MEBIBYTES_MAX} MB`, (t) => {
  const out = execFileSync('du', ['-m', '-d', '1', '--exclude=.cache', 'node_modules/'], {
    encoding: 'utf8',
  })
  const lines = out
    .trim()
    .split('\n')
    .toSorted((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))
  t.true(Number.parseInt(lines[0]!, 10) <= MEBIBYTES_MAX, lines.slice(0, 20).join('\n'))
})

test('the binaries of uWebSockets.js are those that are pinned for this platform', (t) => {
  const found = readdirSync('node_modules/uWebSockets.js').filter((name) => name.endsWith('.node'))
  const pinned = Object.keys(PINNED_NATIVE_SHA256).filter((name) => name.startsWith(NATIVE))
  t.deepEqual(found.toSorted(), pinned.toSorted())
})

test('the step after npm ci removes what this machine never reads', (t) => {
  const { root, files } = clone(t)
  const { npm_config_omit: _, ...inherited } = process.env
  const installed = (omit: Record<string, string>) =>
    execFileSync(process.execPath, ['runtime/launch.mjs', 'installed'], {
      cwd: root,
      env: { ...inherited, npm_command: 'ci', ...omit },
    })
  const stamp = join(root, 'node_modules/.svc-lock')
  installed({ npm_config_omit: 'optional' })
  t.deepEqual(files(), [
    'ava/package.json',
    'pg/index.d.ts',
    'pg/index.js',
    `sodium-native/prebuilds/${platform}-${arch}/sodium-native.node`,
    'typescript/package.json',
    'uWebSockets.js/LICENSE',
    ...['115', '127', '137'].map((abi) => `uWebSockets.js/${NATIVE}${abi}.node`),
  ])
  t.throws(() => readFileSync(stamp), { code: 'ENOENT' }, 'a later start brings what is left out')
  installed({ npm_config_omit: 'dev' })
  t.regex(readFileSync(stamp, 'utf8'), /^[0-9a-f]{64} product$/, 'a start installs nothing')
  installed({})
  t.regex(readFileSync(stamp, 'utf8'), /^[0-9a-f]{64}$/, 'a later start installs nothing')
})

test('the step does not follow links into other trees, and does nothing for a trial', (t) => {
  const { root, files } = clone(t)
  const other = clone(t)
  const before = other.files()
  rmSync(join(root, 'node_modules/uWebSockets.js'), { recursive: true })
  symlinkSync(
    join(other.root, 'node_modules/uWebSockets.js'),
    join(root, 'node_modules/uWebSockets.js'),
  )
  const installed = (more: Record<string, string> = {}) =>
    execFileSync(process.execPath, ['runtime/launch.mjs', 'installed'], {
      cwd: root,
      env: { ...process.env, npm_command: 'ci', ...more },
    })
  const all = files()
  installed({ npm_config_dry_run: 'true' })
  t.deepEqual(files(), all)
  installed()
  t.notDeepEqual(files(), all)
  rmSync(join(root, 'node_modules'), { recursive: true })
  symlinkSync(join(other.root, 'node_modules'), join(root, 'node_modules'))
  installed({ npm_command: 'install' })
  t.deepEqual(other.files(), before)
})

test('an image has no compiler, no declarations and one binary', (t) => {
  const { root, files } = clone(t)
  execFileSync(process.execPath, ['runtime/trim-packages.mjs', '--image'], { cwd: root })
  t.deepEqual(files(), [
    'ava/package.json',
    'pg/index.js',
    `sodium-native/prebuilds/${platform}-${arch}/sodium-native.node`,
    'uWebSockets.js/LICENSE',
    `uWebSockets.js/${NATIVE}${versions.modules}.node`,
  ])
})

test('npm runs no script of a package that was not read', (t) => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, Entry>
  }
  const { allowScripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    allowScripts: Record<string, boolean>
  }
  const names = Object.entries(packages)
    .filter(([path, { hasInstallScript }]) => path !== '' && hasInstallScript === true)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 13))
  t.deepEqual(allowScripts, Object.fromEntries(names.map((name) => [name, false])))
})
