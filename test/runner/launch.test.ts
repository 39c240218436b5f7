import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test from 'ava'

const LOCK = '{}'

test('the launcher removes compiled files whose source is gone, and nothing else', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'svc-launch-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const write = (path: string, text = '') => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  write('package-lock.json', LOCK)
  write('node_modules/.svc-lock', createHash('sha256').update(LOCK).digest('hex'))
  write('node_modules/typescript/bin/tsc')
  write('test/run.ts')
  write('dist/test/run.js', `process.stdout.write('ran ' + process.argv.slice(2))`)
  write('test/oauth/kept.test.ts')
  for (const name of ['kept.test', 'moved.test', 'moved']) {
    for (const ending of ['.js', '.js.map', '.d.ts']) write(`dist/test/oauth/${name}${ending}`)
  }
  write('dist/.build/test.tsbuildinfo')
  write('dist/test/oauth/notes.txt')
  mkdirSync(join(root, 'runtime'))
  copyFileSync('runtime/launch.mjs', join(root, 'runtime/launch.mjs'))

  const out = execFileSync(process.execPath, ['runtime/launch.mjs', 'test', '--area', 'oauth'], {
    cwd: root,
    encoding: 'utf8',
  })
  t.is(out, 'ran --area,oauth')
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
