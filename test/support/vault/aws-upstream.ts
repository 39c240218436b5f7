/** An upstream on loopback that checks signatures of AWS with `aws4`, and answers as S3, DynamoDB and STS. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import {
  UPSTREAM_CERT,
  UPSTREAM_KEY,
  UPSTREAM_NAME,
} from '../../actors/vault/egress/loopback-tls.js'
import { toolRequire } from '../tools.js'

type AwsKeys = { readonly secret: string; readonly token?: string }
type Received = {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}
export type AwsRequest = Received & {
  readonly accessKeyId: string
  readonly region: string
  readonly service: string
}
type Answer = {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
}

export interface AwsUpstream {
  readonly origin: string
  /** By access key id. */
  readonly keys: Map<string, AwsKeys>
  /** Requests with a valid signature. */
  readonly requests: readonly AwsRequest[]
  /** Requests with an invalid signature, and why it is. */
  readonly refused: readonly string[]
  /** How many were refused since the last call. */
  takeRefused(): readonly string[]
  /** How far the clock of the upstream is from the clock of the test. It accepts signatures within a minute. */
  clockSkewMs: number
  /** Seconds until keys of assumed roles expire. */
  roleSecs: number
  close(): Promise<void>
}

type Aws4Signer = { datetime: string; sign(): { headers: Record<string, string> } }
const { RequestSigner } = toolRequire('aws4') as {
  RequestSigner: new (request: object, credentials: object) => Aws4Signer
}

/** `Authorization` of a request as the package aws4 signs it. Its fields are signed as they are. */
export function aws4Authorization(request: object, credentials: object, date: string): string {
  const signer = new RequestSigner({ ...request, doNotModifyHeaders: true }, credentials)
  signer.datetime = date
  return signer.sign().headers['Authorization']!
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** The request, or why its signature is invalid. */
function checked(
  keys: AwsUpstream['keys'],
  clockSkewMs: number,
  { method, url, headers, body }: Received,
): AwsRequest | string {
  const [, accessKeyId = '', day = '', region = '', service = '', names = ''] =
    AUTHORIZATION.exec(headers.authorization ?? '') ?? []
  const own = keys.get(accessKeyId)
  if (own === undefined) return `InvalidAccessKeyId: ${headers.authorization}`
  if (headers['x-amz-security-token'] !== own.token) return 'InvalidToken: another token'
  const date = String(headers['x-amz-date'])
  const at = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
  if (!(Math.abs(at - Date.now() - clockSkewMs) < 60_000)) return `RequestTimeTooSkewed: ${date}`
  if (!date.startsWith(day)) return 'SignatureDoesNotMatch: another day'
  const hash = headers['x-amz-content-sha256']
  if (service === 's3' && hash === undefined) return 'MissingSecurityHeader: x-amz-content-sha256'
  if (hash !== undefined && hash !== 'UNSIGNED-PAYLOAD' && hash !== sha256(body))
    return 'XAmzContentSHA256Mismatch: body'
  const signed = names.split(';')
  const unsigned = Object.keys(headers).filter(
    (name) => name.startsWith('x-amz-') && !signed.includes(name),
  )
  if (unsigned.length > 0 || !signed.includes('host'))
    return `AccessDenied: not signed: ${unsigned}`
  const expected = aws4Authorization(
    {
      method,
      path: url,
      host: headers.host,
      headers: Object.fromEntries(signed.map((name) => [name, headers[name]])),
      body,
      region,
      service,
      extraHeadersToInclude: { range: true },
    },
    { accessKeyId, secretAccessKey: own.secret },
    date,
  )
  if (expected !== headers.authorization) return `SignatureDoesNotMatch: ${expected}`
  return { method, url, headers, body, accessKeyId, region, service }
}

export async function startAwsUpstream(): Promise<AwsUpstream> {
  const keys = new Map<string, AwsKeys>()
  const requests: AwsRequest[] = []
  const refused: string[] = []
  const objects = new Map<string, Buffer>()
  let assumed = 0

  const server = createServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const {
        status = 200,
        headers: fields,
        body,
      } = answerTo(method, url, headers, Buffer.concat(chunks))
      const date = new Date(Date.now() + upstream.clockSkewMs).toUTCString()
      response.sendDate = false
      response.writeHead(status, { date, ...fields }).end(body)
    })
  })

  function answerTo(
    method: string,
    url: string,
    headers: IncomingHttpHeaders,
    body: Buffer,
  ): Answer {
    const seen = checked(keys, upstream.clockSkewMs, { method, url, headers, body })
    if (typeof seen === 'string') {
      refused.push(seen)
      const [code] = seen.split(':')
      const proof = `<StringToSign>${headers.authorization}</StringToSign>`
      return {
        status: 403,
        body: `<Error><Code>${code}</Code><Message>no</Message>${proof}</Error>`,
      }
    }
    requests.push(seen)
    if (url === '/headers') return { body: JSON.stringify(headers) }
    if (seen.service === 'sts') return assumedRole()
    if (seen.service === 'dynamodb') {
      const target = String(headers['x-amz-target'])
      return {
        headers: { 'content-type': 'application/x-amz-json-1.0' },
        body: JSON.stringify(target.endsWith('.ListTables') ? { TableNames: ['stars'] } : {}),
      }
    }
    return object(method, url, body)
  }

  function object(method: string, url: string, body: Buffer): Answer {
    const [path = ''] = url.split('?')
    if (method === 'PUT') {
      objects.set(path, body)
      return { headers: { etag: '"1"' } }
    }
    const found = objects.get(path)
    if (found !== undefined) return { body: found, headers: { etag: '"1"' } }
    return { status: 404, body: '<Error><Code>NoSuchKey</Code></Error>' }
  }

  function assumedRole(): Answer {
    assumed += 1
    const key = {
      id: `ASIATEMPORARY${assumed}`,
      secret: `temporary/secret+${assumed}`,
      token: `temporary+token/${assumed}==`,
    }
    keys.set(key.id, key)
    const until = new Date(Date.now() + upstream.roleSecs * 1000).toISOString()
    return {
      headers: { 'content-type': 'text/xml' },
      body: `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
        <AssumeRoleResult><Credentials><AccessKeyId>${key.id}</AccessKeyId>
        <SecretAccessKey>${key.secret}</SecretAccessKey><SessionToken>${key.token}</SessionToken>
        <Expiration>${until}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
    }
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const upstream: AwsUpstream = {
    origin: `https://${UPSTREAM_NAME}:${port}`,
    keys,
    requests,
    refused,
    takeRefused: () => refused.splice(0),
    clockSkewMs: 0,
    roleSecs: 3_600,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return upstream
}
