/** ERC-4361 messages: composed here, signed by the wallet, and verified when they come back. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import {
  insertSiweNonce,
  type SiweNonce,
  spendSiweNonce,
} from '../../../../../storage/identity/ways/wallets.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { addressAt, tenantHostOf } from '../../tenant-host.js'
import type { SiweTools } from './needs.js'
import type { Composed, MessageOrder, Signed } from './protocol.js'

const STATEMENT = 'Sign in with this account. This costs nothing and sends no transaction.'
/** The message names the page that it is for. */
const PATHS = { sign_in: '/auth/login/ethereum', link: '/auth/account/wallets/new' } as const
const NONCE_BYTES = 16
const ACCOUNT = /^0x[0-9a-fA-F]{40}$/
const SIGNATURE = /^0x[0-9a-fA-F]{130}$/
const CHAIN_ID = /^(?:0x[0-9a-fA-F]{1,12}|[1-9][0-9]{0,14})$/
const MESSAGE_LENGTH_MAX = 2_048
/** Clocks of two processes may differ. */
const CLOCK_SKEW_MS = 5_000

/** Loaded on demand, because the library is large and many deployments do not use it. */
const library = () => Promise.all([import('viem/siwe'), import('viem/utils')])

export type Bound = Pick<SiweNonce, 'tenantId' | 'purpose' | 'sessionId'>

/** The origin of the page: the issuer's, or the tenant's host. */
async function originOf(
  { tenants, issuer }: SiweTools,
  tenantId: string,
  host: string,
  context: MessageContext,
): Promise<URL> {
  return new URL(addressAt(issuer, await tenantHostOf(tenants, tenantId, host, context)))
}

const nonceOf = ({ tenantId, purpose, sessionId }: Bound, browser: string, nonce: string) => ({
  tenantId,
  purpose,
  sessionId,
  nonceSha256: sha256(nonce),
  browserSha256: sha256(browser),
})

/** A message with a fresh nonce, valid for `siwe.message_ttl_secs`. */
export async function composeMessage(
  tools: SiweTools,
  bound: Bound,
  { browser, host, account, chainId: typed }: MessageOrder,
  context: MessageContext,
): Promise<Composed> {
  const { database, clock, random, siwe } = tools
  if (!ACCOUNT.test(account)) return { tag: 'refused', why: 'account' }
  if (!CHAIN_ID.test(typed)) return { tag: 'refused', why: 'chain' }
  const chainId = Number(typed)
  if (chainId < 1 || !isChain(siwe, chainId)) return { tag: 'refused', why: 'chain' }
  const [{ createSiweMessage }, { getAddress }] = await library()
  const { origin, host: domain } = await originOf(tools, bound.tenantId, host, context)
  const nonce = Buffer.from(random.bytes(NONCE_BYTES)).toString('hex')
  const issuedAt = clock.now()
  const expirationTime = new Date(issuedAt.getTime() + siwe.message_ttl_secs * 1000)
  const message = createSiweMessage({
    domain,
    address: getAddress(account.toLowerCase()),
    statement: STATEMENT,
    uri: `${origin}${PATHS[bound.purpose]}`,
    version: '1',
    chainId,
    nonce,
    issuedAt,
    expirationTime,
  })
  const row = { ...nonceOf(bound, browser, nonce), expiresAt: expirationTime }
  await database.system((tx) => insertSiweNonce(tx, row), context)
  return { tag: 'message', message }
}

/**
 * The Ethereum account that signed a message of ours, in lower case. The nonce is used up first, whatever the
 * result. Null when anything is invalid: format, domain, URI, version, chain, times, nonce or signature.
 */
export async function signerOf(
  tools: SiweTools,
  bound: Bound,
  { browser, host, message, signature }: Signed,
  context: MessageContext,
): Promise<string | null> {
  const { database, clock, siwe } = tools
  if (message.length > MESSAGE_LENGTH_MAX || !SIGNATURE.test(signature)) return null
  const [{ createSiweMessage, parseSiweMessage }, { recoverMessageAddress }] = await library()
  const read = parseSiweMessage(message)
  const { nonce, address, chainId, domain, uri, version, issuedAt, expirationTime } = read
  if (nonce === undefined || address === undefined || chainId === undefined) return null
  const now = clock.now()
  const row = nonceOf(bound, browser, nonce)
  const isOurs = await database.system((tx) => spendSiweNonce(tx, row, now), context)
  if (!isOurs) return null
  const own = await originOf(tools, bound.tenantId, host, context)
  if (domain !== own.host || uri !== `${own.origin}${PATHS[bound.purpose]}`) return null
  if (version !== '1' || !isChain(siwe, chainId) || read.statement !== STATEMENT) return null
  if (read.scheme !== undefined || read.notBefore !== undefined) return null
  if (read.resources !== undefined || read.requestId !== undefined) return null
  if (issuedAt === undefined || expirationTime === undefined) return null
  const ageMs = now.getTime() - issuedAt.getTime()
  // The comparisons are false for an invalid date.
  if (!(ageMs >= -CLOCK_SKEW_MS && ageMs <= siwe.message_ttl_secs * 1000)) return null
  if (!(expirationTime.getTime() > now.getTime())) return null
  try {
    // The parser skips what it does not know. Equal texts leave nothing unread.
    const canonical = createSiweMessage({
      ...read,
      domain,
      uri,
      version,
      nonce,
      address,
      chainId,
    })
    if (canonical !== message) return null
    const signer = await recoverMessageAddress({
      message,
      signature: signature as `0x${string}`,
    })
    return signer.toLowerCase() === address.toLowerCase() ? signer.toLowerCase() : null
  } catch {
    return null
  }
}

function isChain({ chain_ids: allowed }: SiweTools['siwe'], chainId: number): boolean {
  return allowed.length === 0 || allowed.includes(chainId)
}
