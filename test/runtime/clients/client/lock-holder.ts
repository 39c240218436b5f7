/**
 * A process that takes the lock on each message of its parent, and reports whether it had the lock
 * alone.
 */
import { open, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { holdingIdentity } from '../../../../runtime/clients/client/identity-file.js'

const path = process.argv[2]!

async function alone(): Promise<boolean> {
  const inside = `${path}.inside`
  try {
    await (await open(inside, 'wx')).close()
  } catch {
    return false
  }
  await sleep(4)
  await rm(inside)
  return true
}

process.on('message', () => {
  void holdingIdentity(path, alone).then((was) => process.send!(was))
})
