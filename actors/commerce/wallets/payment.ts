/**
 * An x402 payment of a wallet: the offer of the seller that the policy allows, and the payload that pays it (x402 v2
 * section 5.2, x402 v1, EIP-3009). Names and versions of assets come from the settings, never from the seller.
 */
import type { Random } from '../../../runtime/kernel/random.js'
import type { SealedWalletRow } from '../../../storage/commerce/wallets.js'
import { type Asset, chainIdOf, networkOfV1, sameAddress } from '../../domain/commerce/assets.js'
import { encodeField, PAYMENT_IDENTIFIER } from '../../domain/commerce/x402.js'
import type { Draft, WalletCompute } from './draft.js'
import { type Intent, invalid, refusalOf } from './policy.js'
import type { PaymentRequiredTerms, RequestInvalid, SignedPayment } from './protocol.js'

const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const AMOUNT = /^[1-9][0-9]{0,77}$/
const UINT256_MAX = 2n ** 256n - 1n
const NONCE_BYTES = 32
/** Sellers check the start of the validity with clocks that may be behind. */
const CLOCK_SKEW_SECS = 600
/** Longer fields are refused by servers. */
const HEADER_CHARS_MAX = 16_000
const URL_CHARS_MAX = 2_048

type PaymentOptions = {
  readonly required: PaymentRequiredTerms
  readonly assets: readonly Asset[]
  /** `wallet.max_authorization_secs`. */
  readonly maxAuthorizationSecs: number
  readonly compute: WalletCompute
  readonly random: Random
}

/** An offer of the seller that a wallet could pay. `asset` is undefined where the deployment does not know it. */
type Candidate = {
  readonly intent: Intent
  readonly asset: Asset | undefined
  readonly timeoutSecs: number
  readonly offered: Readonly<Record<string, unknown>>
}

/** Chooses the first offer that the policy allows, otherwise the first one, whose refusal is the answer. */
export function paymentDraft(
  { required, assets, maxAuthorizationSecs, compute, random }: PaymentOptions,
  wallet: SealedWalletRow,
  id: string,
  now: Date,
): Draft<SignedPayment> | RequestInvalid {
  const candidates = candidatesOf(required, assets)
  const chosen = candidates.find(({ intent }) => refusalOf(wallet, intent) === undefined)
  const candidate = chosen ?? candidates[0]
  if (candidate === undefined) {
    return invalid(
      '/payment_required/accepts',
      'No offer has the scheme exact with EIP-3009 on an EVM chain, and an amount above zero.',
    )
  }
  const { intent, asset, timeoutSecs, offered } = candidate
  const nowSecs = Math.floor(now.getTime() / 1000)
  const validBefore = nowSecs + Math.min(timeoutSecs, maxAuthorizationSecs)
  const authorization = {
    from: wallet.address,
    to: intent.recipient,
    value: String(intent.amount),
    validAfter: String(nowSecs - CLOCK_SKEW_SECS),
    validBefore: String(validBefore),
    nonce: `0x${Buffer.from(random.bytes(NONCE_BYTES)).toString('hex')}`,
  }
  const validUntil = new Date(validBefore * 1000)
  return {
    tag: 'draft',
    intent,
    nonce: authorization.nonce,
    validBefore: validUntil,
    resource: resourceOf(required, offered),
    async sign(key, context) {
      if (asset === undefined) throw new Error('a policy allowed an unknown asset')
      const domain = {
        name: asset.name,
        version: asset.version,
        chainId: chainIdOf(asset.network),
        verifyingContract: asset.address,
      }
      const { hash, signature } = await compute.run(
        'payment',
        { key, domain, authorization },
        context,
      )
      const payload = payloadOf(required, offered, { signature, authorization }, id)
      const headerValue = encodeField(payload)
      if (headerValue.length > HEADER_CHARS_MAX) {
        return invalid('/payment_required', 'Is too long to be paid: its header would not fit.')
      }
      const answer: SignedPayment = {
        id,
        x402Version: required.x402Version,
        headerName: required.x402Version === 2 ? 'PAYMENT-SIGNATURE' : 'X-PAYMENT',
        headerValue,
        network: intent.network,
        asset: intent.asset,
        amount: authorization.value,
        payTo: authorization.to,
        payer: authorization.from,
        nonce: authorization.nonce,
        validBefore: validUntil,
        hash,
        createdAt: now,
      }
      return { tag: 'signature', hash, answer }
    },
  }
}

function candidatesOf(
  { x402Version, accepts }: PaymentRequiredTerms,
  assets: readonly Asset[],
): readonly Candidate[] {
  return accepts.flatMap((offered) => {
    const { scheme, asset: address, payTo, maxTimeoutSeconds: timeoutSecs } = offered
    const named = String(offered['network'])
    const network = x402Version === 2 ? named : networkOfV1(named)
    const amount = offered[x402Version === 2 ? 'amount' : 'maxAmountRequired']
    if (scheme !== 'exact' || network?.startsWith('eip155:') !== true) return []
    if (!matches(address, ADDRESS) || !matches(payTo, ADDRESS) || !matches(amount, AMOUNT))
      return []
    if (typeof timeoutSecs !== 'number' || timeoutSecs < 1 || BigInt(amount) > UINT256_MAX)
      return []
    const asset = assets.find((one) => one.network === network && sameAddress(one.address, address))
    if (!isTransferable(offered['extra'], asset)) return []
    const intent: Intent = {
      kind: 'payment',
      network,
      contract: address.toLowerCase(),
      recipient: payTo.toLowerCase(),
      asset: address.toLowerCase(),
      amount: BigInt(amount),
      feeMax: 0n,
      known: asset !== undefined,
    }
    return [{ intent, asset, timeoutSecs: Math.floor(timeoutSecs), offered }]
  })
}

/** False for another way of transfer, and for an EIP-712 domain that is not the asset's. */
function isTransferable(extra: unknown, asset: Asset | undefined): boolean {
  if (typeof extra !== 'object' || extra === null) return true
  const { assetTransferMethod, name, version } = extra as Readonly<Record<string, unknown>>
  if (assetTransferMethod !== undefined && assetTransferMethod !== 'eip3009') return false
  if (asset === undefined) return true
  return (
    (name === undefined || name === asset.name) &&
    (version === undefined || version === asset.version)
  )
}

function matches(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value)
}

/** The URL of what is paid, without credentials, query and fragment. Null when the seller names none. */
function resourceOf(
  { resource }: PaymentRequiredTerms,
  offered: Readonly<Record<string, unknown>>,
): string | null {
  const named = resource?.['url'] ?? offered['resource']
  if (typeof named !== 'string' || named.length > URL_CHARS_MAX || !URL.canParse(named)) return null
  const { protocol, host, pathname } = new URL(named)
  return protocol === 'https:' || protocol === 'http:' ? `${protocol}//${host}${pathname}` : null
}

function payloadOf(
  { x402Version, resource, extensions }: PaymentRequiredTerms,
  offered: Readonly<Record<string, unknown>>,
  payload: object,
  id: string,
) {
  if (x402Version === 1) {
    return { x402Version, scheme: offered['scheme'], network: offered['network'], payload }
  }
  return {
    x402Version,
    ...(resource === undefined ? {} : { resource }),
    accepted: offered,
    payload,
    ...identified(extensions?.[PAYMENT_IDENTIFIER], id),
  }
}

/** The payment-identifier extension with the id of the signature, if the seller declares the extension. */
function identified(declared: unknown, id: string) {
  if (typeof declared !== 'object' || declared === null) return {}
  const { info } = declared as Readonly<Record<string, unknown>>
  const known = typeof info === 'object' && info !== null ? info : {}
  return { extensions: { [PAYMENT_IDENTIFIER]: { ...declared, info: { ...known, id } } } }
}
