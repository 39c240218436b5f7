/** Signature Version 4: vectors of AWS, and the same signatures as two independent signers. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import test from 'ava'
import * as fc from 'fast-check'
import {
  canonicalRequest,
  sha256,
  signatureOf,
  signingKey,
} from '../../../../../actors/vault/egress/sign/aws/canonical.js'
import { signedCall } from '../../../../../actors/vault/egress/sign/aws/signed-call.js'
import { scopeOf, scopeOfHost } from '../../../../../actors/vault/egress/sign/aws/scope.js'
import type { HeaderPair } from '../../../../../actors/vault/egress/protocol.js'
import { aws4Authorization } from '../../../../support/vault/aws-upstream.js'
import { toolRequire } from '../../../../support/tools.js'

const keysWith = (secretAccessKey: string, sessionToken: string | null = null) => ({
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey,
  sessionToken,
})
const EMPTY = sha256(new Uint8Array(0))
const callOf = (
  url: string,
  now: Date,
  headers: readonly HeaderPair[] = [],
  more: { method?: string; body?: Buffer } = {},
) => {
  const { origin, host, pathname, search } = new URL(url)
  const { method = 'GET', body = null } = more
  const path = pathname + search
  return { method, origin, host, path, headers, body, now, tenantId: 't', credentialId: 'c' }
}

test('the vector of IAM', (t) => {
  const scope = { region: 'us-east-1', service: 'iam' }
  const secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
  const { text, signedHeaders } = canonicalRequest(
    {
      method: 'GET',
      path: '/?Version=2010-05-08&Action=ListUsers',
      headers: [
        ['host', 'iam.amazonaws.com'],
        ['x-amz-date', '20150830T123600Z'],
        ['content-type', 'application/x-www-form-urlencoded; charset=utf-8'],
      ],
      payloadHash: EMPTY,
    },
    scope,
  )
  t.is(signedHeaders, 'content-type;host;x-amz-date')
  t.is(
    sha256(Buffer.from(text)),
    'f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59',
  )
  t.is(
    signingKey(secret, '20150830', scope).toString('hex'),
    'c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9',
  )
  const { signature } = signatureOf(text, keysWith(secret), scope, '20150830T123600Z')
  t.is(
    signature.toString('hex'),
    '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
  )
  const now = new Date('2015-08-30T12:36:00Z')
  const call = callOf('https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08', now, [
    ['content-type', 'application/x-www-form-urlencoded; charset=utf-8'],
  ])
  t.is(
    signedCall(call, keysWith(secret), scope).headers.at(-1)![1],
    'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
  )
})

test('the vector of S3', (t) => {
  const now = new Date('2013-05-24T00:00:00Z')
  const call = callOf('https://examplebucket.s3.amazonaws.com/test.txt', now, [
    ['range', 'bytes=0-9'],
  ])
  const keys = keysWith('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY')
  const { headers } = signedCall(call, keys, { region: 'us-east-1', service: 's3' })
  t.deepEqual(headers.slice(0, -1), [
    ['range', 'bytes=0-9'],
    ['x-amz-date', '20130524T000000Z'],
    ['x-amz-content-sha256', EMPTY],
  ])
  t.regex(
    headers.at(-1)![1],
    /SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41$/,
  )
})

type SmithySigner = {
  sign(request: object, options: object): Promise<{ headers: Record<string, string> }>
}
const { SignatureV4 } = toolRequire('@smithy/signature-v4') as {
  SignatureV4: new (options: object) => SmithySigner
}

class Sha256 {
  readonly #hash: Hash | Hmac
  constructor(secret?: string | Uint8Array) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
  }
  update(bytes: string | Uint8Array): void {
    this.#hash.update(bytes)
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(this.#hash.digest()))
  }
}

const segment = fc.string({
  unit: fc.constantFrom(...'abcXYZ019-._~', '%20', '%2B', '%C3%BC', '%3A', '%40'),
  minLength: 1,
  maxLength: 12,
})
const plainSegment = segment.filter((text) => !/^\.+$/.test(text))
const fieldValue = fc.string({ unit: fc.constantFrom(...'ab c,;=/"'), minLength: 1, maxLength: 20 })

for (const service of ['s3', 'execute-api', 'sts']) {
  test(`${service}: the signatures are the ones of aws4 and of the AWS SDK`, async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(plainSegment, { maxLength: 4 }),
        fc.uniqueArray(fc.tuple(segment, segment), { maxLength: 5, selector: ([name]) => name }),
        fc.option(fieldValue, { nil: undefined }),
        fc.option(fc.uint8Array({ maxLength: 50 }), { nil: undefined }),
        fc.option(fc.constant('token+/=='), { nil: null }),
        async (segments, parameters, meta, bytes, token) => {
          const query = parameters.map(([name, value]) => `${name}=${value}`).join('&')
          const url = `https://api.example.com:8443/${segments.join('/')}${query === '' ? '' : `?${query}`}`
          const now = new Date('2026-11-30T10:20:30Z')
          const body = bytes && Buffer.from(bytes)
          const fields: HeaderPair[] = [['content-type', 'application/json']]
          if (meta !== undefined) fields.push(['x-amz-meta-note', meta])
          const keys = keysWith('secret/+key', token)
          const scope = { region: 'eu-west-1', service }
          const call = callOf(url, now, fields, { method: 'POST', ...(body ? { body } : {}) })
          const { headers, path } = signedCall(call, keys, scope)
          const ours = headers.at(-1)![1]
          const own = Object.fromEntries(headers.slice(0, -1))
          const credentials = {
            accessKeyId: keys.accessKeyId,
            secretAccessKey: keys.secretAccessKey,
            ...(token === null ? {} : { sessionToken: token }),
          }
          const authorization = aws4Authorization(
            {
              method: 'POST',
              path,
              host: call.host,
              headers: { ...own, Host: call.host },
              body: body ?? '',
              ...scope,
            },
            credentials,
            own['x-amz-date']!,
          )
          t.is(ours, authorization)
          const signer = new SignatureV4({
            ...scope,
            credentials,
            sha256: Sha256,
            uriEscapePath: service !== 's3',
            applyChecksum: service === 's3',
          })
          const signed = await signer.sign(
            {
              method: 'POST',
              protocol: 'https:',
              hostname: 'api.example.com',
              path: path.split('?')[0],
              query: Object.fromEntries(
                parameters.map((pair) => pair.map((text) => decodeURIComponent(text))),
              ),
              headers: { ...Object.fromEntries(fields), host: call.host },
              body: body ?? '',
            },
            { signingDate: now },
          )
          t.is(signed.headers['authorization'], ours)
        },
      ),
      { numRuns: 60 },
    )
  })
}

test('S3 has one canonical path for each key', (t) => {
  const uriOf = (path: string, service: string) =>
    canonicalRequest(
      { method: 'GET', path, headers: [], payloadHash: EMPTY },
      { region: 'r', service },
    ).text.split('\n')[1]
  for (const [path, s3, other] of [
    ['/', '/', '/'],
    ['/a//b/', '/a//b/', '/a/b/'],
    ['/a%20b', '/a%20b', '/a%2520b'],
    ['/a:b@c', '/a%3Ab%40c', '/a%3Ab%40c'],
    ['/a%2fb', '/a/b', '/a%252fb'],
    ["/it's(1)*!", '/it%27s%281%29%2A%21', '/it%27s%281%29%2A%21'],
    ['/%E2%82%AC', '/%E2%82%AC', '/%25E2%2582%25AC'],
  ] as const) {
    t.is(uriOf(path, 's3'), s3, path)
    t.is(uriOf(path, 'sqs'), other, path)
  }
})

test('parameters are sorted by name and value, and a plus sign is a space', (t) => {
  const now = new Date('2026-11-30T10:20:30Z')
  const call = callOf('https://x.example/?b=1&a=2&a-b=3&a=1&c&d=x+y', now)
  const { path } = signedCall(call, keysWith('k'), { region: 'r', service: 's' })
  t.is(path, '/?b=1&a=2&a-b=3&a=1&c&d=x%20y')
  const { text } = canonicalRequest(
    { method: 'GET', path, headers: [], payloadHash: EMPTY },
    { region: 'r', service: 's' },
  )
  t.is(text.split('\n')[2], 'a=1&a=2&a-b=3&b=1&c=&d=x%20y')
})

test('spaces of fields collapse, and repeated fields are a list', (t) => {
  const { text } = canonicalRequest(
    {
      method: 'GET',
      path: '/',
      headers: [
        ['x-amz-meta-a', '  a   b  '],
        ['x-amz-meta-a', 'c'],
        ['host', 'h'],
      ],
      payloadHash: EMPTY,
    },
    { region: 'r', service: 's' },
  )
  t.deepEqual(text.split('\n').slice(3, 7), [
    'host:h',
    'x-amz-meta-a:a b,c',
    '',
    'host;x-amz-meta-a',
  ])
})

test('region and service of hosts', (t) => {
  for (const [host, region, service] of [
    ['s3.amazonaws.com', 'us-east-1', 's3'],
    ['bucket.s3.amazonaws.com', 'us-east-1', 's3'],
    ['my.bucket.s3.eu-central-1.amazonaws.com', 'eu-central-1', 's3'],
    ['bucket.s3.dualstack.us-west-2.amazonaws.com', 'us-west-2', 's3'],
    ['s3-eu-west-1.amazonaws.com', 'eu-west-1', 's3'],
    ['s3-fips.us-gov-west-1.amazonaws.com', 'us-gov-west-1', 's3'],
    ['iam.amazonaws.com', 'us-east-1', 'iam'],
    ['sts.ap-southeast-2.amazonaws.com', 'ap-southeast-2', 'sts'],
    ['dynamodb.us-east-1.amazonaws.com', 'us-east-1', 'dynamodb'],
    ['abc123.execute-api.eu-west-1.amazonaws.com', 'eu-west-1', 'execute-api'],
    ['search-x.eu-west-1.es.amazonaws.com', 'eu-west-1', 'es'],
    ['email.eu-west-1.amazonaws.com', 'eu-west-1', 'ses'],
    ['bedrock-runtime.us-east-1.amazonaws.com', 'us-east-1', 'bedrock'],
    ['abc.lambda-url.us-east-1.on.aws', 'us-east-1', 'lambda'],
    ['s3.cn-north-1.amazonaws.com.cn', 'cn-north-1', 's3'],
  ] as const) {
    t.deepEqual(scopeOfHost(host), { region, service }, host)
  }
  t.is(scopeOfHost('s3.example.com'), null)
})

test('the secret wins over the placeholder, and it over the host', (t) => {
  const authorization =
    'AWS4-HMAC-SHA256 Credential=PLACEHOLDER/20261130/eu-north-1/sqs/aws4_request, SignedHeaders=host, Signature=0'
  const call = {
    origin: 'https://s3.us-west-2.amazonaws.com',
    headers: [['authorization', authorization]] as HeaderPair[],
  }
  t.deepEqual(scopeOf({}, call), { region: 'eu-north-1', service: 'sqs' })
  t.deepEqual(scopeOf({ region: 'auto' }, call), { region: 'auto', service: 'sqs' })
  t.deepEqual(scopeOf({}, { ...call, headers: [] }), { region: 'us-west-2', service: 's3' })
  t.is(scopeOf({ region: 'auto' }, { origin: 'https://x.example', headers: [] }), null)
})
