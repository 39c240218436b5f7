/** Calls that are signed with `aws_sigv4`, also from an unmodified SDK. The upstream checks the signatures itself. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import type { Json } from '../../../support/api.js'
import { startAwsUpstream } from '../../../support/vault/aws-upstream.js'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  delegatedToken,
  egressHouse,
  settingOf,
  type Setting,
  UPSTREAM_NAME,
} from '../../../support/vault/egress.js'
import { svcRunOf } from '../../../support/vault/svc-run.js'
import { CACHE } from '../../../support/tools.js'

const house = await egressHouse()
const { api } = house
const aws = await startAwsUpstream()
test.after.always(() => aws.close())

const ID = 'AKIACANARY'
const KEY = 'canary/of+aws/0123456789'
aws.keys.set(ID, { secret: KEY })
const SECRET = { access_key_id: ID, secret_access_key: KEY }

const settingWith = (more: object = {}, grant: Json = {}) =>
  settingOf(
    house,
    { auth_scheme: 'aws_sigv4', credential_type: 'custom', secret: { ...SECRET, ...more } } as Json,
    grant,
  )
const call = ({ delegated, credentialId }: Setting, path: string, more: object = {}) =>
  api.post('/v1/proxy', delegated, { credential_id: credentialId, url: aws.origin + path, ...more })
const last = () => aws.requests.at(-1)!
const S3 = { region: 'eu-central-1', service: 's3' }
/** As a program with placeholder keys signs. */
const placeholder = (region: string, service: string) =>
  [
    'Authorization',
    `AWS4-HMAC-SHA256 Credential=PLACEHOLDER/20260101/${region}/${service}/aws4_request, SignedHeaders=host;x-amz-date, Signature=00`,
  ] as const

test.serial('S3: object keys, parameters, ranges and metadata are signed', async (t) => {
  const setting = await settingWith(S3, { allow_range: true })
  for (const path of [
    '/bucket/a%20b/%C3%BC:@(1)*',
    '/bucket//double/',
    "/bucket?list-type=2&prefix=a+b&marker='x'&flag&z=1&a-b=2&a=1",
  ]) {
    const headers = [
      ['x-amz-meta-note', '  two   spaces '],
      ['range', 'bytes=0-9'],
      ['content-type', 'text/plain'],
    ]
    await call(setting, path, { method: 'PUT', body: 'hello ü', headers }).gives(200)
    t.like(last(), { accessKeyId: ID, ...S3 })
    t.regex(
      String(last().headers.authorization),
      /SignedHeaders=content-type;host;range;x-amz-content-sha256;x-amz-date;x-amz-meta-note,/,
    )
  }
  t.deepEqual(aws.refused, [])
})

test.serial(
  'region and service come from the placeholder; the fields of the caller are removed',
  async (t) => {
    const setting = await settingWith()
    const headers = [
      placeholder('ap-south-1', 'dynamodb'),
      ['X-Amz-Date', '20200101T000000Z'],
      ['X-Amz-Security-Token', 'placeholder'],
      ['X-Amz-Content-Sha256', 'e3b0'],
      ['Content-Digest', 'sha-256=:x:'],
      ['X-Amz-Target', 'DynamoDB_20120810.ListTables'],
      ['User-Agent', 'program'],
    ]
    const { body } = await call(setting, '/', { method: 'POST', body: '{}', headers }).gives(200)
    t.deepEqual(body, { TableNames: ['stars'] })
    t.like(last(), { region: 'ap-south-1', service: 'dynamodb' })
    const { headers: received } = last()
    t.is(received['content-digest'], undefined)
    t.is(received['x-amz-security-token'], undefined)
    t.not(received['x-amz-date'], '20200101T000000Z')
    await call(setting, '/').gives(400)
    t.is(aws.requests.length, 4)
  },
)

test.serial('a session token is sent and signed', async (t) => {
  aws.keys.set('ASIASESSION', { secret: KEY, token: 'session+token/of=the+caller==' })
  const setting = await settingWith({
    access_key_id: 'ASIASESSION',
    session_token: 'session+token/of=the+caller==',
    region: 'us-east-1',
    service: 'sqs',
  })
  const answer = await call(setting, '/headers').gives(200)
  t.regex(
    String(last().headers.authorization),
    /SignedHeaders=host;x-amz-date;x-amz-security-token,/,
  )
  const text = JSON.stringify(answer.body)
  t.false(text.includes('session+token'), text)
  t.false(
    text.includes(String(last().headers.authorization).slice(-64)),
    'the signature is redacted',
  )
})

test.serial('pre-signed URLs and bodies that are signed in chunks are refused', async (t) => {
  const setting = await settingWith(S3)
  const before = aws.requests.length
  const refused = async (path: string, more: object) => {
    const { status, body } = await call(setting, path, more)
    return [status, (body['errors'] as { pointer: string }[])[0]!.pointer]
  }
  t.deepEqual(await refused('/b?X-Amz-Signature=00&X-Amz-Credential=x', {}), [400, '#/url'])
  t.deepEqual(await refused('/b?x-amz-algorithm=AWS4-HMAC-SHA256', {}), [400, '#/url'])
  for (const field of [
    ['x-amz-content-sha256', 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'],
    ['X-Amz-Content-Sha256', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'],
    ['content-encoding', 'gzip, aws-chunked'],
  ]) {
    const more = { method: 'PUT', body: 'x', headers: [field] }
    t.deepEqual(await refused('/b/k', more), [400, '#/headers'])
  }
  t.is(aws.requests.length, before)
  t.deepEqual(aws.refused, [])
})

test.serial(
  'a streamed body is hashed, or relayed unsigned where the program asks for it',
  async (t) => {
    const setting = await settingWith(S3)
    const body = Buffer.alloc(300_000, 'svc')
    const put = (more: Record<string, string> = {}) =>
      house.send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, `${aws.origin}/bucket/large`, {
          'x-svc-method': 'PUT',
          ...more,
        }),
        body,
      })
    const hashed = await put()
    t.is(hashed.statusCode, 200, await hashed.body.text())
    t.regex(String(last().headers['x-amz-content-sha256']), /^[0-9a-f]{64}$/)
    const unsigned = await put({ 'x-svc-header-x-amz-content-sha256': 'UNSIGNED-PAYLOAD' })
    t.is(unsigned.statusCode, 200, await unsigned.body.text())
    t.is(last().headers['x-amz-content-sha256'], 'UNSIGNED-PAYLOAD')
    t.is(last().body.length, body.length)
  },
)

test.serial('a clock that differs is answered with one second try', async (t) => {
  const setting = await settingWith(S3, { max_requests: 3, max_bytes: 10_000 })
  aws.clockSkewMs = -3_600_000
  try {
    await call(setting, '/bucket/late', { method: 'PUT', body: 'late' }).gives(200)
    t.is(last().body.toString(), 'late')
    await call(setting, '/bucket/late', { method: 'HEAD' }).gives(200)
    t.is(aws.takeRefused().length, 2)
    // Another refusal is the answer.
    const other = await settingWith({ ...S3, secret_access_key: 'wrong' })
    const refused = await call(other, '/bucket/late')
    t.is(refused.status, 403)
    t.is(aws.takeRefused().length, 2, 'skewed first, and then the signature is wrong')
  } finally {
    aws.clockSkewMs = 0
  }
  const [first] = await closedCalls(house, setting.tenantId, 2)
  t.like(first, { outcome: 'completed' })
  t.true(Number(first!['bytes']) > 8, 'the bytes of both tries count')
})

test.serial('a refusal reveals neither the key nor the signature', async (t) => {
  const setting = await settingWith({ ...S3, access_key_id: 'AKIAUNKNOWN' })
  const answer = await house.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${aws.origin}/b/k`, { 'x-svc-method': 'GET' }),
  })
  t.is(answer.statusCode, 403)
  t.regex(await answer.body.text(), /Signature=\[redacted\]/)
  t.is(aws.takeRefused().length, 1)
})

test.serial('a role is assumed once, and again before its keys expire', async (t) => {
  const role = {
    role_arn: 'arn:aws:iam::123456789012:role/reader',
    external_id: 'x',
    sts_url: aws.origin,
  }
  const setting = await settingWith({ ...S3, ...role })
  const asked = () => aws.requests.filter(({ service }) => service === 'sts').length
  const began = asked()
  await Promise.all(Array.from({ length: 5 }, () => call(setting, '/headers').gives(200))).then(
    (answers) => {
      for (const { body } of answers) t.false(JSON.stringify(body).includes('temporary+token'))
    },
  )
  t.regex(last().accessKeyId, /^ASIATEMPORARY/)
  t.is(asked(), began + 1)
  const sts = aws.requests.find(({ service }) => service === 'sts')!
  const form = Object.fromEntries(new URLSearchParams(sts.body.toString()))
  t.like(form, {
    Action: 'AssumeRole',
    Version: '2011-06-15',
    RoleArn: role.role_arn,
    ExternalId: 'x',
    RoleSessionName: `svc-${setting.credentialId}`,
  })
  // Keys that expire within a minute are not kept.
  aws.roleSecs = 59
  const short = await settingWith({ ...S3, ...role })
  await call(short, '/headers').gives(200)
  await call(short, '/headers').gives(200)
  t.is(asked(), began + 3)
  aws.roleSecs = 3_600
  const wrong = await settingWith({ ...S3, ...role, secret_access_key: 'wrong' })
  const refused = await call(wrong, '/headers').gives(502)
  t.regex(String(refused.body['detail']), /assume its role: SignatureDoesNotMatch\./)
  t.is(aws.takeRefused().length, 1)
})

test.serial('an unmodified AWS SDK with placeholder keys works under svc run', async (t) => {
  const setting = await settingWith()
  const scope = { scope: 'vault:list vault:read' }
  const delegated = await delegatedToken(house.running, setting.direct, setting.agentId, scope)
  const svcRun = await svcRunOf(house, { delegated })
  const script = join(svcRun.home, 'program.cjs')
  await writeFile(
    script,
    `const toolRequire = require('node:module').createRequire(${JSON.stringify(join(CACHE, 'tools', 'package.json'))})
const { S3Client, PutObjectCommand, GetObjectCommand } = toolRequire('@aws-sdk/client-s3')
const { DynamoDBClient, ListTablesCommand } = toolRequire('@aws-sdk/client-dynamodb')
const { Readable } = require('node:stream')
const config = { endpoint: ${JSON.stringify(aws.origin)}, region: 'eu-west-3', maxAttempts: 1,
  credentials: { accessKeyId: 'PLACEHOLDER', secretAccessKey: 'placeholder', sessionToken: 'placeholder' } }
async function main() {
  const s3 = new S3Client({ ...config, forcePathStyle: true })
  const name = { Bucket: 'stars', Key: 'a b/ü(1)+.txt' }
  await s3.send(new PutObjectCommand({ ...name, Body: 'from the SDK', ContentType: 'text/plain', Metadata: { note: 'x' } }))
  const { Body } = await s3.send(new GetObjectCommand(name))
  process.stdout.write((await Body.transformToString()) + '\\n')
  const streams = new S3Client({ ...config, forcePathStyle: true, requestChecksumCalculation: 'WHEN_REQUIRED' })
  const stream = { Bucket: 'stars', Key: 'stream', Body: Readable.from(['in ', 'pieces']), ContentLength: 9 }
  await streams.send(new PutObjectCommand(stream))
  const { TableNames } = await new DynamoDBClient(config).send(new ListTablesCommand({}))
  process.stdout.write(TableNames.join() + '\\n')
}
main()
`,
  )
  const { code, out, err } = await svcRun.run([], [process.execPath, script])
  await svcRun.end()
  t.is(code, 0, err)
  t.is(out, 'from the SDK\nstars\n')
  const own = aws.requests.slice(-4)
  t.deepEqual(
    own.map(({ method, service, region }) => [method, service, region]),
    [
      ['PUT', 's3', 'eu-west-3'],
      ['GET', 's3', 'eu-west-3'],
      ['PUT', 's3', 'eu-west-3'],
      ['POST', 'dynamodb', 'eu-west-3'],
    ],
  )
  t.is(own[2]!.body.toString(), 'in pieces')
  t.deepEqual(aws.refused, [])
  for (const { headers } of own) {
    t.false(JSON.stringify(headers).toLowerCase().includes('placeholder'))
  }
})

test('malformed secrets are refused when they are stored', async (t) => {
  const { token } = await api.workspace()
  for (const [secret, pointer] of [
    [{ ...SECRET, secret_access_key: undefined }, '#/secret/secret_access_key'],
    [{ ...SECRET, region: 'EU' }, '#/secret/region'],
    [{ ...SECRET, role_arn: 'reader' }, '#/secret/role_arn'],
    [{ ...SECRET, external_id: 'x' }, '#/secret/external_id'],
    [{ ...SECRET, [KEY]: KEY }, '#/secret'],
    [KEY, '#/secret'],
  ] as const) {
    const { status, body } = await api.post(CREDENTIALS, token, {
      provider: 'aws',
      credential_type: 'custom',
      label: 'L',
      auth_scheme: 'aws_sigv4',
      allowed_hosts: [UPSTREAM_NAME],
      secret,
    } as Json)
    const [fault] = (body['errors'] ?? []) as { pointer: string }[]
    t.deepEqual([status, fault?.pointer], [400, pointer])
    t.false(JSON.stringify(body).includes(KEY))
  }
})

test.serial('a grant for a path reads no object that a header names', async (t) => {
  const setting = await settingWith(S3, { path_prefixes: ['/bucket/mine'] })
  const put = (name: string) =>
    call(setting, '/bucket/mine/a', { method: 'PUT', headers: [[name, '/bucket/theirs']] })
  for (const name of ['x-amz-copy-source', 'X-Amz-Rename-Source', 'x_amz_copy_source'])
    t.is((await put(name).gives(403)).body['error'], 'policy_denied')
  await put('x-amz-meta-source-note').gives(200)
  const whole = await settingWith(S3)
  const headers = [['x-amz-copy-source', '/bucket/theirs']]
  await call(whole, '/bucket/mine/a', { method: 'PUT', headers }).gives(200)
})
