/**
 * An object store for tests. It verifies each signature from the request as received, as Amazon S3 describes it
 * (Authenticating Requests: Using the Authorization Header), and answers with the errors of S3.
 */
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

const SKEW_MS_MAX = 15 * 60_000

export type StoredObject = {
  readonly bytes: Buffer
  readonly contentType: string | undefined
  readonly cacheControl: string | undefined
}

export interface TestObjectStore {
  readonly url: string
  /** By path: `/<bucket>/<key>`. */
  readonly objects: Map<string, StoredObject>
  /** It takes the signatures of this account. */
  account: Account
  /** Answers every request with this status. Null: works. */
  failing: number | null
  close(): Promise<void>
}

type Account = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

export async function openObjectStore(account: Account): Promise<TestObjectStore> {
  const objects = new Map<string, StoredObject>()
  const server = createServer((request, response) => {
    const fail = (status: number, code: string) =>
      response
        .writeHead(status, { 'content-type': 'application/xml' })
        .end(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`)
    void bodyOf(request).then((body) => {
      if (store.failing !== null) return fail(store.failing, 'InternalError')
      const fault = faultOf(request, body, store.account)
      if (fault !== null) return fail(403, fault)
      const path = request.url!
      if (request.method === 'PUT') {
        const { 'content-type': contentType, 'cache-control': cacheControl } = request.headers
        objects.set(path, { bytes: body, contentType, cacheControl })
        return response.writeHead(200, { etag: '"x"' }).end()
      }
      if (request.method === 'DELETE') {
        objects.delete(path)
        return response.writeHead(204).end()
      }
      return fail(405, 'MethodNotAllowed')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const store: TestObjectStore = {
    url: `http://127.0.0.1:${port}`,
    objects,
    account,
    failing: null,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
  return store
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/

const hash = (data: string | Buffer) => createHash('sha256').update(data).digest('hex')
const mac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest()

/** The error code of S3 for a request that is not signed by the account, or null. */
function faultOf(request: IncomingMessage, body: Buffer, account: Account): string | null {
  const { headers, method, url = '' } = request
  const [, keyId, day, region, names = '', signature] =
    AUTHORIZATION.exec(headers.authorization ?? '') ?? []
  if (keyId === undefined || day === undefined) return 'AccessDenied'
  if (keyId !== account.accessKeyId) return 'InvalidAccessKeyId'
  if (region !== account.region) return 'AuthorizationHeaderMalformed'
  const time = String(headers['x-amz-date'])
  const moment = Date.parse(
    time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  )
  if (!time.startsWith(day) || !(Math.abs(Date.now() - moment) < SKEW_MS_MAX))
    return 'RequestTimeTooSkewed'
  const payload = String(headers['x-amz-content-sha256'])
  if (payload !== hash(body)) return 'XAmzContentSHA256Mismatch'
  const listed = names.split(';')
  const needed = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))]
  if (needed.some((name) => !listed.includes(name))) return 'AccessDenied'
  const lines = listed.map((name) => `${name}:${String(headers[name]).trim()}\n`).join('')
  const canonical = `${method}\n${url}\n\n${lines}\n${names}\n${payload}`
  const scope = `${day}/${region}/s3/aws4_request`
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${hash(canonical)}`
  const dayKey = mac(`AWS4${account.secretAccessKey}`, day)
  const key = mac(mac(mac(dayKey, region), 's3'), 'aws4_request')
  return mac(key, text).toString('hex') === signature ? null : 'SignatureDoesNotMatch'
}
