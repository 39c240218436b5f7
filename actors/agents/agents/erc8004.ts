/**
 * Checks that an agent of a registry on a chain (ERC-8004) belongs to whom registers: its owner signed the ownership string
 * (docs/reference/agents.md). Keys sign as EIP-191 says, contract accounts as EIP-1271.
 */
import {
  FairShare,
  inPlace,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import { NodeUnavailable } from '../../platform/evm/node.js'
import { checkChain, ownerOf, type Registry, registryName } from './registries/registry.js'
import type { ChainAgent, OnChainAgent, StartRefused } from './protocol.js'

/** Concurrent checks. A node that does not answer holds a place for some seconds. */
const CHECKING_MAX = 64
const CHECKING_PER_SENDER_MAX = 8
/** A proof in hexadecimal digits: 65 bytes of a key, more of a contract account. */
const PROOF = /^0x(?:[0-9a-fA-F]{2}){1,1024}$/
const VALID = `0x1626ba7e${'0'.repeat(56)}`

export type Erc8004Needs = {
  /** Those that this deployment knows. */
  readonly registries: readonly Registry[]
  readonly groups: Pick<TenantGroups, 'of'>
  readonly counts?: ShareCounts | undefined
}

type OnChainVerdict =
  | { readonly tag: 'on_chain'; readonly onChain: OnChainAgent }
  | Extract<StartRefused, { tag: 'invalid_registration' | 'chain_unavailable' | 'busy' }>

const BUSY: OnChainVerdict = { tag: 'busy' }

export function erc8004({ registries, groups, counts }: Erc8004Needs) {
  const levels = [{ name: 'sender', max: CHECKING_PER_SENDER_MAX }]
  const places = new FairShare({ resource: 'erc8004', total: CHECKING_MAX, levels, counts })

  /**
   * @param ownership the ownership string of the registration, which the agent's key has signed.
   * @param from the tenant where the agent registers, and the network of the stranger who asks.
   */
  async function judge(
    { chain, agentId: token }: ChainAgent,
    { proof, ownership }: { readonly proof: string | undefined; readonly ownership: string },
    { tenantId, network }: { readonly tenantId: string; readonly network: string | null },
  ): Promise<OnChainVerdict> {
    const registry = registries.find((one) => one.network === chain)
    if (registry === undefined) {
      return invalid('/anchor_value/chain', 'is not a chain whose registry this deployment knows')
    }
    if (proof === undefined || !PROOF.test(proof)) {
      return invalid('/anchor_proof', 'must be a signature, 0x and hexadecimal digits')
    }
    const named = { network: chain, registry: registryName(registry), token }
    const of = await groups.of(tenantId)
    return inPlace(places, network ?? tenantId, of, BUSY, async () => {
      try {
        await checkChain(registry)
        const block = await registry.node.latestBlock()
        const owner = await ownerOf(registry, token, block)
        if (owner === null) {
          return invalid('/anchor_value/agent_id', 'is not an agent of the registry')
        }
        const signed = await isSignedBy(registry, { owner, block }, ownership, proof)
        if (!signed) {
          return invalid(
            '/anchor_proof',
            'must be a signature by the owner of the agent over the ownership string',
          )
        }
        return { tag: 'on_chain', onChain: { ...named, block } }
      } catch (error) {
        if (!(error instanceof NodeUnavailable)) throw error
        return { tag: 'chain_unavailable', detail: 'the node of the chain does not answer' }
      }
    })
  }

  return { judge }
}

async function isSignedBy(
  { node }: Registry,
  { owner, block }: { readonly owner: string; readonly block: number },
  message: string,
  proof: string,
): Promise<boolean> {
  // Loaded on demand, because the library is large and many deployments do not use it.
  const { encodeFunctionData, hashMessage, parseAbi, recoverMessageAddress } = await import(
    'viem/utils'
  )
  const signature = proof as `0x${string}`
  const signer = await recoverMessageAddress({ message, signature }).catch(() => null)
  if (signer?.toLowerCase() === owner) return true
  const abi = parseAbi(['function isValidSignature(bytes32 hash, bytes signature)'])
  const data = encodeFunctionData({ abi, args: [hashMessage(message), signature] })
  return (await node.read(owner, data, block)) === VALID
}

function invalid(pointer: string, detail: string): OnChainVerdict {
  return { tag: 'invalid_registration', pointer, detail }
}
