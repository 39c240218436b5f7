/** Agents of ERC-8004 registries on a test chain, and their owners. */
import { encodeDeployData, encodeFunctionData, type Hex } from 'viem'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { ownershipString } from '../../../actors/domain/signed-strings.js'
import { nonceFor } from '../identity/nonce.js'
import { type Answer, callAt, type Json } from '../identity/tenant-agent.js'
import { newAccount, type TestChain } from './chain.js'
import { type Deployed, type MarketPlaces, NETWORK, TOKEN_NAME } from './market.js'

/** Token ids are for one file: files share the chain. */
let tokens = BigInt(process.pid) * 1_000_000n

/** Where an agent registers. */
export type Target = { readonly issuer: string; readonly tenantId: string }

export type Owner = { readonly address: Hex; sign(message: string): Promise<Hex> }

/** SVC_ variables of a service that reads the registries. */
export function registryEnvironment(
  { rpcUrl, token, identity, reputation }: Omit<MarketPlaces, 'facilitatorUrl'>,
  confirmations: number,
  readEveryMs = 2_000,
): Record<string, string> {
  const table = {
    id: NETWORK,
    rpc_url: rpcUrl,
    asset: token,
    asset_name: TOKEN_NAME,
    asset_version: '2',
    identity_registry: identity.address,
    reputation_registry: reputation.address,
  }
  const fields = Object.entries(table).map(([name, value]) => `${name} = "${value}"`)
  return {
    SVC_CHAINS: `[{ ${fields.join(', ')}, confirmations = ${confirmations}, read_every_ms = ${readEveryMs} }]`,
    SVC_DEPLOYMENT__EMBEDDED_CHAIN_MONITOR: 'true',
  }
}

export function registriesOf(chain: TestChain) {
  const { identity, reputation, account } = chain.places
  const write = ({ abi, address }: Deployed, functionName: string, args: readonly unknown[]) =>
    chain.send(encodeFunctionData({ abi, functionName, args }), address)

  return {
    /** A transaction that is not sent. */
    signed: (name: string, ...args: unknown[]) =>
      chain.signed(
        encodeFunctionData({ abi: identity.abi, functionName: name, args }),
        identity.address,
      ),
    identity: (name: string, ...args: unknown[]) => write(identity, name, args),
    reputation: (name: string, ...args: unknown[]) => write(reputation, name, args),
    /** A key that owns agents. */
    owner(): Owner {
      const key = newAccount()
      return { address: key.address, sign: (message) => key.signMessage({ message }) }
    },
    /** A contract that owns agents. */
    async contractOwner(): Promise<Owner> {
      const key = newAccount()
      const hash = await chain.send(encodeDeployData({ ...account, args: [key.address] }))
      const receipt = (await chain.ask('eth_getTransactionReceipt', hash)) as Json
      return {
        address: receipt['contractAddress'] as Hex,
        sign: (message) => key.signMessage({ message }),
      }
    },
    /** Lists a new agent. @returns its token id. */
    async agent({ address }: Owner): Promise<string> {
      tokens += 1n
      await write(identity, 'register', [tokens, address])
      return String(tokens)
    },
    anchorOf: (token: string) => `${NETWORK}:${identity.address.toLowerCase()}:${token}`,
    /** Blocks without transactions. */
    async mine(blocks: number) {
      for (let block = 0; block < blocks; block += 1) await chain.ask('evm_mine')
    },
  }
}

export type Registries = ReturnType<typeof registriesOf>

/** The members of a registration of a new key with an agent of the chain. */
export async function onChainRegistration(
  target: Target,
  { owner, token }: { readonly owner: Owner; readonly token: string },
) {
  const key = createAgentKey()
  const { algorithm: keyAlgorithm, publicKey } = key
  const claim = { ...target, anchorType: 'erc8004', keyAlgorithm, publicKey }
  const ownership = ownershipString(claim)
  return {
    key,
    ownership,
    body: {
      name: 'Agent on a chain',
      tenant_id: target.tenantId,
      anchor_type: 'erc8004',
      anchor_value: { chain: NETWORK, agent_id: token },
      anchor_proof: await owner.sign(ownership),
      public_key: publicKey,
      key_algorithm: keyAlgorithm,
      key_ownership_proof: key.signChallenge(ownership),
    },
  }
}

/** Registers the agent. @returns the answer of the start where it is refused. */
export async function registerOnChain(
  baseUrl: string,
  body: Json,
  route = '/api/v1/agents/auth/register',
  more: Json = {},
): Promise<Answer> {
  const path = `${route}/pow`
  const post = (at: string, json: Json) =>
    callAt(baseUrl, at, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(json),
    })
  const started = await post(path, body)
  if (started.status !== 200) return started
  const nonce = nonceFor({
    challengeToken: String(started.body['challenge_token']),
    difficultyBits: Number(started.body['difficulty_bits']),
  })
  return post(`${path}/complete`, { challenge_id: started.body['challenge_id'], nonce, ...more })
}

/** Registers an agent and causes an event of each type about it. */
export async function everyChange(chain: TestChain, baseUrl: string, target: Target) {
  const registries = registriesOf(chain)
  const owner = registries.owner()
  const token = await registries.agent(owner)
  const { body } = await onChainRegistration(target, { owner, token })
  const { status, text } = await registerOnChain(baseUrl, body)
  if (status !== 200) throw new Error(text)
  const id = BigInt(token)
  const feedback = [id, 87n, 0, 'starred', '', '', '', `0x${'00'.repeat(32)}`]
  await registries.identity('transferFrom', owner.address, owner.address, id)
  await registries.identity('setAgentURI', id, 'https://agents.test/1.json')
  await registries.identity('setMetadata', id, 'key', '0x01')
  await registries.reputation('giveFeedback', ...feedback)
  await registries.reputation('revokeFeedback', id, 1n)
}
