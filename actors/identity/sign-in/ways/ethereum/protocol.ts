/**
 * Sign-in with Ethereum (ERC-4361). The service composes a message with a single-use nonce, bound to the browser. The
 * wallet signs it. The signature proves the Ethereum account, which a person linked to an account before. Rules:
 * docs/reference/identity.md, "Sign-in with Ethereum".
 */
import { address, type Ask } from '../../../../../runtime/kernel/protocol.js'
import type { PageTenant } from '../../../../domain/tenants/branding.js'
import type { OwnAccount, SignInFirst } from '../../account/protocol.js'
import type {
  Busy,
  FlowPage,
  FlowStep,
  FlowUnknown,
  Locked,
  SignedIn,
  StepRedirect,
} from '../../protocol.js'

export type SiweProtocol = {
  /** The page of a flow that connects to the wallet. */
  showEthereumSignIn: Ask<FlowStep, ({ tag: 'page' } & FlowPage) | StepRedirect | FlowUnknown>
  /** The message to sign, with a fresh nonce. */
  composeSignInMessage: Ask<FlowStep & MessageOrder, Composed | FlowUnknown>
  /** `unlinked`: the signature is right, and no user of the tenant has this Ethereum account. */
  signInWithEthereum: Ask<
    FlowStep & Signed,
    SignedIn | (FlowPage & { tag: 'wrong' | 'unlinked' }) | (FlowPage & Locked) | FlowUnknown | Busy
  >
  /** The page that links an Ethereum account. Needs a fresh authentication, otherwise `sign_in`. */
  showNewWallet: Ask<OwnAccount, ({ tag: 'page' } & OwnShown) | SignInFirst>
  composeLinkMessage: Ask<OwnAccount & MessageOrder, Composed | SignInFirst>
  /** `taken`: it is linked to an account already, or the account has the most that it may have. */
  linkOwnWallet: Ask<
    OwnAccount & Signed & { address: string },
    { tag: 'linked' } | (OwnShown & { tag: 'wrong' | 'taken' }) | SignInFirst
  >
  removeOwnWallet: Ask<
    OwnAccount & { walletId: string; address: string },
    { tag: 'removed' } | { tag: 'unknown_wallet' } | { tag: 'last_way_in' } | SignInFirst
  >
}

export type OwnShown = { readonly tenant: PageTenant }

export type MessageOrder = {
  /** Secret of the browser, the same in both steps. */
  readonly browser: string
  /** The Host of the request: the domain of the message. */
  readonly host: string
  /** The Ethereum account, as the wallet names it. */
  readonly account: string
  /** Decimal, or hexadecimal with 0x. */
  readonly chainId: string
}
export type Composed =
  | { readonly tag: 'message'; readonly message: string }
  | { readonly tag: 'refused'; readonly why: 'account' | 'chain' }
/** What the wallet signed. */
export type Signed = {
  readonly browser: string
  readonly host: string
  readonly message: string
  /** 65 bytes, hexadecimal with 0x (EIP-191). */
  readonly signature: string
}

export const siwe = address<SiweProtocol>('siwe', {
  idempotent: ['showEthereumSignIn', 'showNewWallet'],
})
