/** Temporary keys of a role, from `sts:AssumeRole`. They are kept in memory until a minute before they expire. */
import type { Clock } from '../../../../../runtime/kernel/clock.js'
import { denied } from '../../../../domain/vault/denied.js'
import type { AwsSigV4Secret } from '../../../../domain/vault/secret-documents/aws-sigv4.js'
import { proxyErrorOf } from '../../../../platform/outbound-http/failures.js'
import { judgeTarget, type TargetRules } from '../../../../platform/outbound-http/targets.js'
import type { Upstreams } from '../../../../platform/outbound-http/upstreams.js'
import type { ProxyOutcome } from '../../protocol.js'
import type { RefusingAnswer, SignOutcome, UnsignedCall } from '../signer.js'
import { keysIn, signedAgain, signedCall } from './signed-call.js'
import { type Keys, sha256 } from './canonical.js'
import { scopeOfHost } from './scope.js'

type Refused = Extract<SignOutcome, { tag: 'refused' }>

export interface AssumedRoles {
  /** The keys for a call. Calls that need the same keys at the same time share a request. */
  keysOf(call: UnsignedCall, secret: AwsSigV4Secret): Promise<Keys | Refused>
  /** Forgets the keys of a tenant. */
  forget(tenantId: string): void
}

type AssumedRolesNeeds = {
  readonly upstreams: Upstreams
  readonly rules: TargetRules
  readonly clock: Clock
}

const LIMIT_MS = 8_000
const ANSWER_BYTES_MAX = 64 * 1024
const MARGIN_MS = 60_000
/** A failure is kept, so that calls do not flood the service. */
const FAILURE_KEPT_MS = 5_000
const ROLES_MAX = 1_024
const SESSION_SECS = 3_600

type Assumed = {
  readonly tenantId: string
  readonly keys: Keys | Refused
  readonly untilMs: number
}

export function createAssumedRoles(needs: AssumedRolesNeeds): AssumedRoles {
  const known = new Map<string, Assumed>()
  const running = new Map<string, Promise<Assumed>>()
  const nowMs = () => needs.clock.now().getTime()

  function keep(key: string, assumed: Assumed): void {
    for (const [other, { untilMs }] of known) if (untilMs <= nowMs()) known.delete(other)
    if (known.size >= ROLES_MAX) known.delete([...known.keys()][0]!)
    known.set(key, assumed)
  }

  async function obtain(key: string, call: UnsignedCall, secret: AwsSigV4Secret) {
    try {
      const assumed = await assume(needs, call, secret)
      keep(key, assumed)
      return assumed
    } finally {
      running.delete(key)
    }
  }

  return {
    async keysOf(call, secret) {
      // The key of a rotated secret differs.
      const digest = sha256(Buffer.from(JSON.stringify(secret)))
      const key = `${call.tenantId} ${call.credentialId} ${digest}`
      const kept = known.get(key)
      if (kept !== undefined && nowMs() < kept.untilMs) return kept.keys
      const attempt = running.get(key) ?? obtain(key, call, secret)
      running.set(key, attempt)
      return (await attempt).keys
    },
    forget(tenantId) {
      for (const [key, each] of known) if (each.tenantId === tenantId) known.delete(key)
    },
  }
}

async function assume(
  needs: AssumedRolesNeeds,
  { tenantId, credentialId }: UnsignedCall,
  secret: AwsSigV4Secret,
): Promise<Assumed> {
  const failedWith = (outcome: ProxyOutcome): Assumed => ({
    tenantId,
    keys: { tag: 'refused', outcome },
    untilMs: needs.clock.now().getTime() + FAILURE_KEPT_MS,
  })
  const target = judgeTarget(secret.sts_url ?? stsUrl(secret), needs.rules)
  if (target.tag === 'refused') return failedWith(PROHIBITED)
  const { url } = target
  const scope = {
    region: secret.region ?? scopeOfHost(url.hostname)?.region ?? 'us-east-1',
    service: 'sts',
  }
  const form = new URLSearchParams({
    Action: 'AssumeRole',
    Version: '2011-06-15',
    RoleArn: secret.role_arn!,
    RoleSessionName: `svc-${credentialId}`,
    DurationSeconds: String(SESSION_SECS),
    ...(secret.external_id === undefined ? {} : { ExternalId: secret.external_id }),
  })
  const call: UnsignedCall = {
    method: 'POST',
    origin: url.origin,
    host: url.host,
    path: url.pathname + url.search,
    headers: [['content-type', 'application/x-www-form-urlencoded; charset=utf-8']],
    body: Buffer.from(form.toString()),
    now: needs.clock.now(),
    tenantId,
    credentialId,
  }
  const signal = AbortSignal.timeout(LIMIT_MS)
  const ask = (signing: UnsignedCall) =>
    send(needs.upstreams, signing, signedCall(signing, keysIn(secret), scope).headers, signal)
  try {
    let answer = await ask(call)
    const change = answer.status === 200 ? null : signedAgain(answer, call)
    if (change !== null) answer = await ask({ ...call, ...change })
    return assumedIn(answer, tenantId) ?? failedWith(refusedBy(answer))
  } catch (error) {
    const fault = signal.aborted ? 'connection_timeout' : proxyErrorOf(error, false)
    if (fault === 'destination_ip_prohibited') return failedWith(PROHIBITED)
    const detail = 'The service that gives the keys of the role is unavailable.'
    return failedWith({ tag: 'upstream_failed', error: 'destination_unavailable', detail })
  }
}

const PROHIBITED = denied('address_not_public', 'The STS of the credential has no public address.')

/** In the partition of the role. */
function stsUrl({ region, role_arn: arn = '' }: AwsSigV4Secret): string {
  if (arn.startsWith('arn:aws-cn:'))
    return `https://sts.${region ?? 'cn-north-1'}.amazonaws.com.cn/`
  if (arn.startsWith('arn:aws-us-gov:'))
    return `https://sts.${region ?? 'us-gov-west-1'}.amazonaws.com/`
  return region === undefined
    ? 'https://sts.amazonaws.com/'
    : `https://sts.${region}.amazonaws.com/`
}

async function send(
  upstreams: Upstreams,
  { origin, path, body, credentialId, tenantId }: UnsignedCall,
  headers: readonly (readonly [string, string])[],
  signal: AbortSignal,
): Promise<RefusingAnswer> {
  const answer = await upstreams.of(origin, `${credentialId} sts`, tenantId).request({
    method: 'POST',
    path,
    headers: { ...Object.fromEntries(headers), 'accept-encoding': 'identity' },
    body: body as Buffer,
    signal,
  })
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer of STS is too long')
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  return { status: answer.statusCode, headers: answer.headers, text }
}

function assumedIn({ status, text }: RefusingAnswer, tenantId: string): Assumed | undefined {
  const accessKeyId = elementOf(text, 'AccessKeyId')
  const secretAccessKey = elementOf(text, 'SecretAccessKey')
  const sessionToken = elementOf(text, 'SessionToken')
  const endMs = Date.parse(elementOf(text, 'Expiration') ?? '')
  if (status !== 200 || Number.isNaN(endMs)) return undefined
  if (accessKeyId === undefined || secretAccessKey === undefined || sessionToken === undefined)
    return undefined
  const keys = { accessKeyId, secretAccessKey, sessionToken }
  return { tenantId, keys, untilMs: endMs - MARGIN_MS }
}

function refusedBy({ text }: RefusingAnswer): ProxyOutcome {
  const code = elementOf(text, 'Code')
  const reason = /^[A-Za-z.]{1,64}$/.test(code ?? '') ? `: ${code}.` : '.'
  const detail = `AWS STS did not let the keys of the credential assume its role${reason}`
  return { tag: 'upstream_failed', error: 'proxy_configuration_error', detail }
}

/** The text of an XML element without children: no entities, as in keys, tokens and times. */
const elementOf = (xml: string, name: string) =>
  new RegExp(`<${name}>\\s*([!-%'-;=?-~]+)\\s*</${name}>`).exec(xml)?.[1]
