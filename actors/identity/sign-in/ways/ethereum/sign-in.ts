/** A linked Ethereum account as the first factor. */
import { useWallet } from '../../../../../storage/identity/ways/wallets.js'
import { quotaAddress } from '../../../../domain/quota-address.js'
import { firstFactorPage, flowPage, type Progress, progressIn } from '../../flow/progress.js'
import { attemptFirstFactor, openSessionInFlow } from '../../first-factor.js'
import { composeMessage, signerOf } from './messages.js'
import type { SiweHandler } from './needs.js'

/** RFC 8176: proof of possession of a key, of unknown storage. */
const AMR = ['pop']

const bound = ({ flow }: Progress) =>
  ({ tenantId: flow.tenantId, purpose: 'sign_in', sessionId: null }) as const

export const showEthereumSignIn: SiweHandler<'showEthereumSignIn'> = firstFactorPage

export const composeSignInMessage: SiweHandler<'composeSignInMessage'> = async (
  tools,
  { flow, visitor, ...order },
  context,
) => {
  const progress = await progressIn(tools, flow, visitor.token, context)
  return 'tag' in progress ? progress : composeMessage(tools, bound(progress), order, context)
}

export const signInWithEthereum: SiweHandler<'signInWithEthereum'> = async (
  tools,
  { flow: token, visitor, ...signed },
  context,
) => {
  const { database, clock } = tools
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const { flow } = progress
  const { tenantId } = flow
  const { address } = visitor
  const name = `siwe:${quotaAddress(address)}`
  let signer = null as string | null
  const judged = await attemptFirstFactor(
    tools,
    { tenantId, factor: 'siwe', name, address },
    async () => {
      const account = await signerOf(tools, bound(progress), signed, context)
      signer = account
      if (account === null) return { tag: 'wrong' }
      const found = await database.system(
        (tx) => useWallet(tx, tenantId, account, clock.now()),
        context,
      )
      return found === undefined ? { tag: 'wrong' } : { tag: 'found', found }
    },
    context,
  )
  if (judged.tag === 'busy') return judged
  const shown = flowPage(token, flow)
  if (judged.tag === 'locked') return { ...shown, ...judged }
  if (judged.tag === 'wrong') return { ...shown, tag: signer === null ? 'wrong' : 'unlinked' }
  const { found } = judged
  return openSessionInFlow(tools, { flow, token, found, amr: AMR, visitor }, context)
}
