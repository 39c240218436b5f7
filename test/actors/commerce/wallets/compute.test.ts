/** Signatures of wallets, compared with a public library's. */
import { randomBytes } from 'node:crypto'
import test from 'ava'
import { bytesToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import {
  addressOf,
  checksums,
  payment,
  transaction,
} from '../../../../actors/commerce/wallets/compute.js'
import { TRANSFER_WITH_AUTHORIZATION } from '../../../../actors/platform/evm/transfer-authorization.js'

const ROUNDS = 20
const TOKEN = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const PAYEE = '0x8ba1f109551bd432803012645ac136ddd64dba72'
const domain = { name: 'USDC', version: '2', chainId: 84_532, verifyingContract: TOKEN } as const

function keyPair() {
  const key = new Uint8Array(randomBytes(32))
  return { key: () => key.slice(), account: privateKeyToAccount(bytesToHex(key)) }
}

test('addresses equal those from the library, in EIP-55 form', (t) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { key, account } = keyPair()
    t.is(addressOf({ key: key() }), account.address)
    t.deepEqual(checksums({ addresses: [account.address.toLowerCase()] }), [account.address])
  }
})

test('payments are signed as the library signs them, with the smaller s', async (t) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { key, account } = keyPair()
    const authorization = {
      from: account.address,
      to: PAYEE,
      value: String(round),
      validAfter: '0',
      validBefore: '1795469761',
      nonce: bytesToHex(randomBytes(32)),
    } as const
    const { signature } = payment({ key: key(), domain, authorization })
    const expected = await account.signTypedData({
      domain,
      types: TRANSFER_WITH_AUTHORIZATION,
      primaryType: 'TransferWithAuthorization',
      message: {
        ...authorization,
        value: BigInt(round),
        validAfter: 0n,
        validBefore: 1_795_469_761n,
      },
    })
    t.is(signature, expected)
  }
})

test('transactions are signed as the library signs them', async (t) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { key, account } = keyPair()
    const terms = { chainId: 84_532, nonce: round, to: PAYEE, data: '0x12345678' } as const
    const amounts = { value: '7', gas: '21000', maxFeePerGas: '9', maxPriorityFeePerGas: '1' }
    const { raw } = transaction({ key: key(), ...terms, ...amounts })
    const expected = await account.signTransaction({
      ...terms,
      value: 7n,
      gas: 21_000n,
      maxFeePerGas: 9n,
      maxPriorityFeePerGas: 1n,
    })
    t.is(raw, expected)
  }
})

test('the key is wiped, also after a failure', (t) => {
  const { key, account } = keyPair()
  const wiped = new Uint8Array(32)
  const used = key()
  addressOf({ key: used })
  t.deepEqual(used, wiped)
  const zero = new Uint8Array(32)
  t.throws(() => addressOf({ key: zero }), { message: /private key/ })
  const failing = key()
  const authorization = {
    from: account.address,
    to: 'not an address',
    value: '1',
    validAfter: '0',
    validBefore: '1',
    nonce: `0x${'0'.repeat(64)}`,
  }
  t.throws(() => payment({ key: failing, domain, authorization }))
  t.deepEqual(failing, wiped)
})
