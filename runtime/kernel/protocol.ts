/** The types that describe an actor's messages. Types only, plus one constructor. */

/** A message that is answered with one of the tagged outcomes of `Reply`. */
export type Ask<Message, Reply extends { tag: string }> = { message: Message; reply: Reply }

/** A message without an answer. Delivered at most once. */
export type Send<Message> = { message: Message; reply: undefined }

/** Message name -> its request and its reply. */
export type Protocol = Record<string, { message: unknown; reply: unknown }>

/** What the kernel may do with some messages of an actor. */
type MessageRules<P extends Protocol> = {
  /**
   * The kernel may send them again after the actor restarted while the first was in flight. They append no event, and what
   * they write is the same after the second time.
   */
  readonly idempotent?: readonly (keyof P & string)[]
  /** They do not start the thread of the actor. Before its first use they are refused. */
  readonly passive?: readonly (keyof P & string)[]
}

/** The name of an actor, carrying its protocol as a phantom type. */
export type Address<P extends Protocol> = Required<MessageRules<P>> & {
  readonly name: string
  readonly protocol?: P
}

/** Names an actor. */
export function address<P extends Protocol>(
  name: string,
  { idempotent = [], passive = [] }: MessageRules<P> = {},
): Address<P> {
  return { name, idempotent, passive }
}
