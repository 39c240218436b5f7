/** libuv's thread pool has its size before its first use, however the command is started. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

const root = process.cwd()
const { bin, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  bin: Record<string, string>
  scripts: Record<string, string>
}

const preload = ['-r', join(root, 'runtime/thread-pool.cjs')]
const run = (program: string, environment: Readonly<Record<string, string>>) =>
  execFileSync(process.execPath, [...preload, '-e', program], {
    encoding: 'utf8',
    env: environment,
  }).trim()
const sizeWith = (environment: Readonly<Record<string, string>>) =>
  run('process.stdout.write(process.env.UV_THREADPOOL_SIZE)', environment)

test('both ways to start the command set the pool size first', (t) => {
  t.is(bin['svc'], 'runtime/svc.cjs')
  t.regex(
    readFileSync(join(root, bin['svc']!), 'utf8'),
    /require\('\.\/thread-pool\.cjs'\)[^]*import\(/,
  )
  for (const name of ['start', 'svc']) {
    t.true(scripts[name]!.includes('-r ./runtime/thread-pool.cjs'), name)
  }
  const version = execFileSync(process.execPath, [join(root, bin['svc']!), '--version'])
  t.regex(String(version), /^\d+\.\d+\.\d+ \(interface \d+\.\d+\.\d+\)\n$/)
})

test('npm start bounds the arenas of glibc', (t) => {
  t.true(scripts['start']!.startsWith('MALLOC_ARENA_MAX=2 exec node '))
})

test('the pool holds all hashes and four more, and at least 16', (t) => {
  t.is(sizeWith({}), '16')
  t.is(sizeWith({ SVC_AUTH__ARGON2_MAX_CONCURRENT: '20' }), '24')
  t.is(sizeWith({ UV_THREADPOOL_SIZE: '5' }), '5')
})

if (process.platform === 'linux') {
  test('the size is in force', (t) => {
    const program = `require('node:crypto').pbkdf2('a', 'b', 1, 32, 'sha1', () => {
      process.stdout.write(String(require('node:fs').readdirSync('/proc/self/task').length))
    })`
    // Node itself starts a few threads in both cases.
    const own = Number(run(program, { UV_THREADPOOL_SIZE: '1' })) - 1
    t.is(Number(run(program, {})), own + 16)
    t.is(Number(run(program, { SVC_AUTH__ARGON2_MAX_CONCURRENT: '20' })), own + 24)
  })
}
