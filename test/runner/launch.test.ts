import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'

const LOCK = '{}'

/** A folder with the launcher and what it finds. `write` adds a file. */
function clone(t: ExecutionContext, compiler: string) {
  const root = mkdtempSync(join(tmpdir(), 'svc-launch-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const write = (path: string, text = '') => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  write('package-lock.json', LOCK)
  write('node_modules/.svc-lock', createHash('sha256').update(LOCK).digest('hex'))
  write('node_modules/typescript/bin/tsc', compiler)
  mkdirSync(join(root, 'runtime'))
  copyFileSync('runtime/launch.mjs', join(root, 'runtime/launch.mjs'))
  const launch = (...args: string[]) =>
    execFileSync(process.execPath, ['runtime/launch.mjs', ...args], { cwd: root, encoding: 'utf8' })
  return { root, write, launch }
}

test('a start removes the types, until a build has written the projects', (t) => {
  const compiler = `require('node:fs').writeFileSync('asked', process.argv.slice(2).join(' '))`
  const { root, write, launch } = clone(t, compiler)
  write('dist/runtime/main.js')
  write('runtime/main.ts')
  for (const folder of ['test', 'bench']) {
    write(`dist/${folder}/run.js`)
    write(`${folder}/run.ts`)
  }
  const asked = (task: string) => {
    launch(task)
    return readFileSync(join(root, 'asked'), 'utf8')
  }
  t.is(asked('serve'), '-p runtime/tsconfig.start.json')
  t.is(asked('prepare'), '-b --noCheck runtime')
  for (const task of ['test', 'bench', 'build']) t.is(asked(task), '-b')
  write('dist/.build/kernel.tsbuildinfo')
  t.is(asked('serve'), '-b --noCheck runtime')
})

test('a first start leaves out the packages for development, and what needs them adds them', (t) => {
  const { root, write } = clone(t, '')
  for (const file of ['dist/runtime/main', 'dist/test/run']) {
    write(`${file}.js`)
    write(`${file.slice(5)}.ts`)
  }
  write('npm.js', `require('node:fs').writeFileSync('asked', process.argv.slice(2).join(' '))`)
  write('runtime/trim-packages.mjs')
  const asked = (task: string) => {
    rmSync(join(root, 'asked'), { force: true })
    execFileSync(process.execPath, ['runtime/launch.mjs', task], {
      cwd: root,
      env: { ...process.env, npm_execpath: join(root, 'npm.js') },
    })
    if (!existsSync(join(root, 'asked'))) return undefined
    return readFileSync(join(root, 'asked'), 'utf8').split(' --no-audit')[0]
  }
  rmSync(join(root, 'node_modules/.svc-lock'))
  t.is(asked('serve'), 'ci --ignore-scripts --omit=dev --include=optional')
  t.is(asked('migrate'), undefined)
  t.is(asked('build'), 'install --no-save --ignore-scripts --include=dev --include=optional')
  for (const task of ['serve', 'test', 'prepare', 'build']) t.is(asked(task), undefined, task)
  write('package-lock.json', '{ }')
  t.is(asked('test'), 'ci --ignore-scripts --include=dev --include=optional')
  write('package-lock.json', '{}')
  write('dist/.build/kernel.tsbuildinfo')
  t.is(asked('serve'), 'ci --ignore-scripts --include=dev --include=optional', 'after a build')
})

test('a start writes the files of a build', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-start-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const tsc = 'node_modules/typescript/bin/tsc'
  const info = join(folder, 'start.tsbuildinfo')
  const project = ['-p', 'runtime/tsconfig.start.json', '--outDir', folder]
  execFileSync(process.execPath, [tsc, ...project, '--tsBuildInfoFile', info])
  const filesIn = (at: string) =>
    readdirSync(at, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:[cm]?js|json)$/.test(name) && !/^(?:bench|test|\.build)\//.test(name))
      .sort()
  const built = filesIn('dist')
  t.deepEqual(filesIn(folder), built)
  const differ = built.filter(
    (name) => !readFileSync(join(folder, name)).equals(readFileSync(join('dist', name))),
  )
  t.deepEqual(differ, [])
})

test('the launcher removes compiled files whose source is gone, and nothing else', (t) => {
  const { root, write, launch } = clone(t, '')
  write('test/run.ts')
  write('dist/test/run.js', `process.stdout.write('ran ' + process.argv.slice(2))`)
  write('test/oauth/kept.test.ts')
  for (const name of ['kept.test', 'moved.test', 'moved']) {
    for (const ending of ['.js', '.js.map', '.d.ts']) write(`dist/test/oauth/${name}${ending}`)
  }
  write('dist/.build/test.tsbuildinfo')
  write('dist/test/oauth/notes.txt')
  t.is(launch('test', '--area', 'oauth'), 'ran --area,oauth')
  t.deepEqual(readdirSync(join(root, 'dist/test/oauth')).sort(), [
    'kept.test.d.ts',
    'kept.test.js',
    'kept.test.js.map',
    'notes.txt',
  ])
  t.deepEqual(readdirSync(join(root, 'dist')).sort(), ['.build', 'test'])
  t.deepEqual(readdirSync(join(root, 'dist/test')).sort(), ['oauth', 'run.js'])
})

/** Commands of package.json that documents show first, with the program that each ends in, and a text in its place. */
for (const [command, program, text, ran] of [
  [
    'production:try',
    'deploy/production-on-loopback.sh',
    `#!/bin/sh\nprintf 'ran %s,%s' "$@"\n`,
    'ran one,two',
  ],
  ...(['client', 'resource-server'] as const).map(
    (name) =>
      [
        `pack:${name}`,
        'dist/runtime/clients/packages/pack.js',
        `process.stdout.write('ran ' + process.argv.slice(2))\n`,
        `ran ${name},one,two`,
      ] as const,
  ),
] as const) {
  test(`npm run ${command} installs and compiles in a fresh clone`, (t) => {
    const root = mkdtempSync(join(tmpdir(), 'svc-clone-'))
    t.teardown(() => rmSync(root, { recursive: true }))
    const write = (path: string, text: string, mode = 0o644) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text, { mode })
    }
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object }
    const manifest = { name: 'clone', dependencies: { typescript: 'file:compiler' } }
    write('package.json', JSON.stringify({ ...manifest, type: 'module', scripts }))
    write(
      'package-lock.json',
      JSON.stringify({
        name: 'clone',
        lockfileVersion: 3,
        packages: {
          '': manifest,
          compiler: { name: 'typescript' },
          'node_modules/typescript': { resolved: 'compiler', link: true },
        },
      }),
    )
    write('compiler/package.json', JSON.stringify({ name: 'typescript', type: 'module' }))
    // The compiler of the clone writes the program, so that it exists only after the installation.
    write(
      'compiler/bin/tsc',
      `import { mkdirSync, writeFileSync } from 'node:fs'
       mkdirSync(${JSON.stringify(dirname(program))}, { recursive: true })
       writeFileSync(${JSON.stringify(program)}, ${JSON.stringify(text)}, { mode: 0o755 })`,
    )
    mkdirSync(join(root, 'runtime'))
    for (const file of ['runtime/launch.mjs', 'runtime/trim-packages.mjs']) {
      copyFileSync(file, join(root, file))
    }
    const out = execFileSync('npm', ['run', '--silent', command, '--', 'one', 'two'], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, npm_config_offline: 'true' },
    })
    t.is(out, ran)
  })
}
