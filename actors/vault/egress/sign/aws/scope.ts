/** Region and service of a call: from the secret, else as the caller signs it, else from the host. */
import type { AwsSigV4Secret } from '../../../../domain/vault/secret-documents/aws-sigv4.js'
import type { UnsignedCall } from '../signer.js'
import type { Scope } from './canonical.js'

/** A program with placeholder keys names both (`Credential=KEY/DATE/REGION/SERVICE/aws4_request`). */
const CREDENTIAL =
  /\bCredential=[^/,\s]+\/\d{8}\/([a-z0-9-]{1,63})\/([a-z0-9-]{1,63})\/aws4_request\b/i
const REGION = /^[a-z]{2}(?:-[a-z]+){1,3}-\d{1,2}$/
const SUFFIX = /\.(?:amazonaws\.com(\.cn)?|api\.aws|on\.aws)$/
/** Names in hosts that differ from the name in signatures. */
const SIGNING_NAMES: Readonly<Record<string, string>> = {
  'bedrock-agent': 'bedrock',
  'bedrock-agent-runtime': 'bedrock',
  'bedrock-runtime': 'bedrock',
  email: 'ses',
  'lambda-url': 'lambda',
  queue: 'sqs',
}

/** Null where a part is unknown. */
export function scopeOf(
  { region, service }: Pick<AwsSigV4Secret, 'region' | 'service'>,
  { headers, origin }: Pick<UnsignedCall, 'headers' | 'origin'>,
): Scope | null {
  const signed = headers.find(([name]) => name === 'authorization')?.[1] ?? ''
  const [, signedRegion, signedService] = CREDENTIAL.exec(signed) ?? []
  const host = scopeOfHost(new URL(origin).hostname)
  const known = {
    region: region ?? signedRegion?.toLowerCase() ?? host?.region,
    service: service ?? signedService?.toLowerCase() ?? host?.service,
  }
  if (known.region === undefined || known.service === undefined) return null
  return known as Scope
}

/** Such as `bucket.s3.eu-central-1.amazonaws.com`, `sts.amazonaws.com` and `name.eu-west-1.es.amazonaws.com`. */
export function scopeOfHost(hostname: string): Scope | null {
  const suffix = SUFFIX.exec(hostname)
  if (suffix === null) return null
  const labels = hostname
    .slice(0, suffix.index)
    .split('.')
    .filter((label) => label !== 'dualstack')
    .map((label) => label.replace(/-fips$/, ''))
  const at = labels.findLastIndex((label) => REGION.test(label))
  const last = labels.at(-1)!
  if (at < 0) {
    // `s3-eu-west-1`, and services without a region in their host.
    const [, oldRegion] = /^s3-(.+)$/.exec(last) ?? []
    if (oldRegion !== undefined && REGION.test(oldRegion))
      return { region: oldRegion, service: 's3' }
    const region = suffix[1] === undefined ? 'us-east-1' : 'cn-north-1'
    return { region, service: signingName(last) }
  }
  const label = at === labels.length - 1 ? labels[at - 1] : last
  return label === undefined ? null : { region: labels[at]!, service: signingName(label) }
}

const signingName = (label: string) => SIGNING_NAMES[label] ?? label
