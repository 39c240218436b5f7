/** Files that are written as a whole: no reader and no crash sees a part of one. */
import { randomBytes } from 'node:crypto'
import { open, rename, rm, writeFile } from 'node:fs/promises'

/** Other users of the machine cannot read the file. */
const OWNER_ONLY = 0o600

/** Replaces the file in one step once all data is there. After a failure the file is as before. */
export async function replaceFile(
  path: string,
  data: string | AsyncIterable<Uint8Array>,
  mode = OWNER_ONLY,
): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`
  try {
    const file = await open(draft, 'wx', mode)
    try {
      await writeFile(file, data)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
