/** Test files that share a process run as if each had its own. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { ROOM_TITLE, ROOMS } from './room-titles.js'
import { roomsOf, roomText } from './rooms.js'
import { sourceOf, tapReader } from './tap.js'

test('rooms have few members of one layer; what changes its process is alone', (t) => {
  const many = Array.from({ length: 20 }, (_, nth) => `dist/test/flows/vault/${nth}.test.js`)
  const files = [...many, 'dist/test/gateway/a.test.js', 'dist/test/tidy.test.js']
  const { rooms, others } = roomsOf([...files, 'dist/test/gateway/b.test.js'], (file) =>
    file.endsWith('b.test.js') ? "process.env['TZ'] = 'UTC'" : "t.is(process.env['TZ'], 'UTC')",
  )
  t.deepEqual(others, ['dist/test/gateway/b.test.js'])
  t.deepEqual(
    rooms.flatMap(({ members }) => members),
    files,
  )
  t.deepEqual(
    rooms.map(({ name, members }) => [name, members.length]),
    [
      ['flows-1', 10],
      ['flows-2', 10],
      ['gateway-1', 1],
      ['tree-1', 1],
    ],
  )
})

test('files of a profile that few name follow each other', (t) => {
  const texts: Readonly<Record<string, string>> = {
    a: "sharedService('plain')",
    b: "sharedService('hosts'); sharedService('plain')",
    c: '',
    d: "sharedPair('strict')",
    e: 'sharedService("hosts", { transport })',
    f: "openShop({ profile: 'strict' })",
    ...Object.fromEntries(
      Array.from({ length: 16 }, (_, nth) => [`g${nth}`, "sharedTwo('plain')"]),
    ),
  }
  const fileOf = (name: string) => `dist/test/flows/${name}.test.js`
  const { rooms } = roomsOf(Object.keys(texts).map(fileOf), (file) => {
    return texts[/(\w+)\.test\.js$/.exec(file)![1]!]!
  })
  const [first] = rooms
  t.deepEqual(first!.members.slice(0, 7), ['a', 'b', 'e', 'c', 'd', 'f', 'g0'].map(fileOf))
})

const MEMBERS = {
  first: `
    test.beforeEach(() => void (globalThis.hooks ??= []).push('first'))
    test('one', (t) => t.deepEqual(globalThis.hooks, ['first']))
    test.after.always(() => void globalThis.hooks.push('over'))`,
  broken: `setInterval(() => undefined, 1_000)\n    throw new Error('not ready')`,
  second: `
    await Promise.resolve()
    test.serial('one', (t) => t.deepEqual(globalThis.hooks, ['first', 'over']))
    test.skip('two', (t) => t.fail())
    test('three', (t) => t.is(1, 2))`,
} as const

test('each member has its own hooks and titles, and one that does not load is named', (t) => {
  const folder = join(ROOMS, `own-${process.pid}`)
  const [room, times] = [join(folder, 'room.test.js'), join(folder, 'times')]
  mkdirSync(folder, { recursive: true })
  t.teardown(() => rmSync(folder, { recursive: true }))
  const paths = Object.entries(MEMBERS).map(([member, body]) => {
    const path = join(folder, `${member}.test.js`)
    writeFileSync(path, `import test from 'ava'\n${body}\n`)
    return path
  })
  writeFileSync(room, roomText(paths))
  const ava = ['node_modules/.bin/ava', '--tap', room]
  const env = { ...process.env, TEST_TIMES: times }
  const { stdout, signal } = spawnSync(process.execPath, ava, {
    env,
    encoding: 'utf8',
    timeout: 120_000,
  })
  t.is(signal, null, 'the process of the room ends')
  const points: [string, string, string][] = []
  let detail = ''
  const read = tapReader((point) => {
    const source = sourceOf(point.title, [room])!
    points.push([source.file, source.title, point.result])
    if (source.title === ROOM_TITLE) detail = point.detail.join('\n')
  })
  for (const line of stdout.split('\n')) read(line)
  const [first, broken, second] = paths
  t.deepEqual(
    points.toSorted(([, a], [, b]) => (a < b ? -1 : 1)),
    [
      [first, 'one', 'passed'],
      [second, 'one', 'passed'],
      [room, ROOM_TITLE, 'failed'],
      [second, 'three', 'failed'],
      [second, 'two', 'skipped'],
    ],
  )
  t.true(detail.includes(broken!))
  const written = readFileSync(times, 'utf8').trim().split('\n')
  t.deepEqual(
    written.map((line) => (JSON.parse(line) as { file: string }).file.endsWith('.test.js')),
    [true, true, true],
  )
})
