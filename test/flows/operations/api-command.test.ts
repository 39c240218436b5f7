/** `svc api` as an administrator uses it: every operation by its name (docs/reference/commands.md). */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { RESOURCES } from '../../../runtime/cli/api/resources.js'
import { callText } from '../../../runtime/cli/api/table.js'
import { progressBar } from '../../../runtime/cli/progress.js'
import { bodyOfFields, callOf, type Operation } from '../../../runtime/cli/api/operations.js'
import type { Json } from '../../support/api.js'
import { sharedApi } from '../../support/service.js'

const MAIN = new URL('../../../runtime/main.js', import.meta.url).pathname
const { api, running } = await sharedApi('plain')
const { token } = await api.workspace()
const folder = mkdtempSync(join(tmpdir(), 'svc-api-'))
const tokenFile = join(folder, 'token')
writeFileSync(tokenFile, token, { mode: 0o600 })
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

/** Runs `svc api` while the service runs in this process. */
const svc = (words: readonly string[], input = '') => run(['api', ...words], input)

async function run(words: readonly string[], input = '') {
  const { baseUrl, ca } = running
  const certificate = join(folder, 'ca.pem')
  if (ca !== undefined) writeFileSync(certificate, ca)
  const child = spawn(process.execPath, [MAIN, ...words, '--url', baseUrl], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      ...(ca === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificate }),
    },
  })
  child.stdin.end(input)
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (text.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (text.err += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, ...text }
}
const call = (words: readonly string[], input?: string) =>
  svc(['call', ...words, '--token-file', tokenFile], input)

test('operations are listed, and called by their names', async (t) => {
  const listed = await svc(['list', '--json'])
  t.is(listed.code, 0, listed.err)
  const { operations, target } = JSON.parse(listed.out) as Json
  t.true((operations as Json[]).some((each) => each['operation_id'] === 'createApplication'))
  t.true(String(target).includes(running.baseUrl))

  const redirect = 'https://shop.example.com/callback'
  const fields = ['--field', 'name=Shop', '--field', `redirect_uris=${JSON.stringify([redirect])}`]
  const made = await call(['createApplication', ...fields, '--json'])
  t.is(made.code, 0, made.err)
  const { status, body } = JSON.parse(made.out) as { status: number; body: Json }
  t.is(status, 201)
  t.is(body['name'], 'Shop')
  t.deepEqual(body['redirect_uris'], [redirect])

  const id = String(body['id'])
  const read = await call(['getapplication', '--param', `application_id=${id}`])
  t.is(read.code, 0, read.err)
  t.is((JSON.parse(read.out) as Json)['id'], id)

  const whole = await call(['createApplication', '--body', '@-'], '{"name":"From standard input"}')
  t.is(whole.code, 0, whole.err)
  t.is((JSON.parse(whole.out) as Json)['name'], 'From standard input')
})

const resource = (...words: readonly string[]) => run([...words, '--token-file', tokenFile])

test('users, applications and webhooks are tables for people and JSON for programs', async (t) => {
  const made = await resource('apps', 'create', 'name=Till', '--json')
  t.is(made.code, 0, made.err)
  const { client_id: id } = (JSON.parse(made.out) as { body: Json }).body
  const listed = await resource('apps', 'list', 'limit=200')
  t.is(listed.code, 0, listed.err)
  t.regex(listed.out, /^CLIENT ID +NAME +CLIENT TYPE +STATUS/)
  const line = listed.out.split('\n').find((one) => one.includes('Till'))!
  t.regex(line, new RegExp(`^${String(id)}  Till +confidential +active`))
  t.regex((await resource('apps', 'show', String(id))).out, /^name +Till/m)
  t.regex((await resource('apps', 'remove', String(id))).out, /^Delete an application: done$/m)

  const invited = await resource('users', 'invite', 'email=kim@commands.example')
  t.is(invited.code, 0, invited.err)
  const user = /^id +(\S+)$/m.exec(invited.out)![1]!
  t.regex((await resource('users', 'list', 'q=kim@')).out, /kim@commands\.example .*invited/)
  t.is((await resource('users', 'list', 'q=no-such-name')).out, 'None.\n')
  t.is((await resource('users', 'remove', user)).code, 0)
  const gone = await resource('users', 'show', user)
  t.is(gone.code, 22)
  t.regex(gone.out, /^error +not_found$/m)
  const unnamed = await resource('users', 'show')
  t.is(unnamed.code, 1)
  t.regex(unnamed.err, /svc users show: readTenantUser needs --param user_id/)
})

test('a table shows control characters of names as a sign, and the next page', (t) => {
  const rows = [{ id: '1', name: 'A\u001b[2J\nB', status: 'active', scopes: ['a', 'b'] }]
  const shape = { columns: ['id', 'name', 'status', 'scopes'], isCut: false, done: 'Done' }
  const link = '<https://id.example.com/x?limit=1&cursor_id=1>; rel="next"'
  t.is(
    callText(rows, { ...shape, link }),
    'ID  NAME     STATUS  SCOPES\n1   A\ufffd[2J\ufffdB  active  a b\nMore: limit=1 cursor_id=1',
  )
  t.is(callText('', { ...shape, link: undefined }), 'Done')
})

test('every short command is an operation of the service', async (t) => {
  const { out } = await svc(['list', '--json'])
  const known = (JSON.parse(out) as { operations: Json[] }).operations.map(
    (each) => each['operation_id'],
  )
  for (const { commands } of Object.values(RESOURCES))
    for (const [name, operation] of commands) t.true(known.includes(operation), name)
})

test('progress is drawn on terminals only, and removed when all is done', (t) => {
  const drawn: string[] = []
  const write = (text: string) => drawn.push(text) > 0
  progressBar('tables', { write })(1, 2)
  t.deepEqual(drawn, [])
  const bar = progressBar('tables', { write, isTTY: true })
  bar(1, 2)
  bar(2, 2)
  t.regex(drawn[0]!, /█{12}░{12} 1 of 2 tables/)
  t.is(drawn[1], '\u001b[K')
})

test('a refusal is printed and is exit code 22, a mistake in the command is 1', async (t) => {
  const refused = await call(['getApplication', '--param', 'application_id=none', '-i'])
  t.is(refused.code, 22)
  t.regex(refused.out, /^404\n/)
  t.regex(refused.out, /"error": "not_found"/)
  for (const [words, message] of [
    [['createAplication'], /no operation createAplication\. Similar: createApplication/],
    [['createApplication', '--body', '{'], /the body is not JSON/],
  ] as const) {
    const { code, err } = await call(words)
    t.is(code, 1, words.join(' '))
    t.regex(err, message)
  }
})

test('fields make bodies, also with unusual names', (t) => {
  t.deepEqual(bodyOfFields([], undefined), undefined)
  t.deepEqual(bodyOfFields(['a.b=1', 'a.c=x', 'd=["y"]', 'e=a=b'], { a: { z: true } }), {
    a: { z: true, b: 1, c: 'x' },
    d: ['y'],
    e: 'a=b',
  })
  const body = bodyOfFields(['__proto__.polluted=1'], undefined) as object
  t.deepEqual(Object.keys(body), ['__proto__'])
  t.is(({} as { polluted?: unknown }).polluted, undefined)
})

test('parameters are written where they belong, and encoded', (t) => {
  const operation: Operation = {
    id: 'example',
    method: 'POST',
    path: '/things/{id}',
    summary: '',
    tags: [],
    parameters: [
      { name: 'id', in: 'path', required: true },
      { name: 'tag', in: 'query', required: false },
      { name: 'Idempotency-Key', in: 'header', required: false },
    ],
    bodyTypes: ['application/x-www-form-urlencoded'],
  }
  const values = new Map([
    ['id', ['a/b?c']],
    ['tag', ['x', 'y&z']],
    ['idempotency-key', ['k']],
  ])
  const read: Operation = { ...operation, method: 'GET', bodyTypes: [] }
  for (const [given, body, message] of [
    [[], undefined, /needs --param id=VALUE \(in the path\)/],
    [[...values, ['x', ['1']]], undefined, /no parameter x\. It has: id, tag/],
    [[...values], { a: 1 }, /takes no body/],
  ] as const)
    t.throws(() => callOf(read, new Map(given as [string, string[]][]), body), { message })
  t.deepEqual(callOf(operation, values, { a: 'b', c: 1 }), {
    path: '/things/a%2Fb%3Fc?tag=x&tag=y%26z',
    headers: { 'Idempotency-Key': 'k' },
    form: { a: 'b', c: '1' },
  })
})
