/**
 * Signs requests to an object store: AWS Signature Version 4 in the Authorization header, for requests without a query
 * (Amazon S3 API Reference, Authenticating Requests: Using the Authorization Header).
 */
import { createHash, createHmac } from 'node:crypto'

export type StoreCredentials = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

type UnsignedRequest = {
  readonly method: string
  /** As sent: with its percent escapes. */
  readonly path: string
  /** Host, with its port if that is not the default. */
  readonly host: string
  /** Further headers to sign. Names are lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The headers of the request with its signature. */
export function signed(
  { method, path, host, headers, body }: UnsignedRequest,
  { accessKeyId, secretAccessKey, region }: StoreCredentials,
  now: Date,
): Readonly<Record<string, string>> {
  const time = now.toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
  const bodyHash = sha256(body)
  const all: Readonly<Record<string, string>> = {
    ...headers,
    host,
    'x-amz-content-sha256': bodyHash,
    'x-amz-date': time,
  }
  const names = Object.keys(all).toSorted()
  const signedHeaders = names.join(';')
  const canonical = [
    method,
    path,
    '',
    ...names.map((name) => `${name}:${all[name]!.trim().replaceAll(/ +/g, ' ')}`),
    '',
    signedHeaders,
    bodyHash,
  ].join('\n')
  const day = time.slice(0, 8)
  const scope = `${day}/${region}/s3/aws4_request`
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${secretAccessKey}`,
  )
  const signature = createHmac('sha256', key)
    .update([ALGORITHM, time, scope, sha256(canonical)].join('\n'))
    .digest('hex')
  return {
    ...all,
    authorization: `${ALGORITHM} Credential=${accessKeyId}/${scope},SignedHeaders=${signedHeaders},Signature=${signature}`,
  }
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}
