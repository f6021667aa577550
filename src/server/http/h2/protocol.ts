/** Types of frames (RFC 9113, section 6). */
export const FrameType = {
  DATA: 0x0,
  HEADERS: 0x1,
  PRIORITY: 0x2,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
  CONTINUATION: 0x9,
} as const;

/** Flags of frames (RFC 9113, section 6); END_STREAM and ACK are the same bit of different types. */
export const Flag = {
  ACK: 0x1,
  END_STREAM: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const;

/** RFC 9113, section 7. */
export const Http2Code = {
  NO_ERROR: 0x0,
  PROTOCOL_ERROR: 0x1,
  INTERNAL_ERROR: 0x2,
  FLOW_CONTROL_ERROR: 0x3,
  STREAM_CLOSED: 0x5,
  FRAME_SIZE_ERROR: 0x6,
  REFUSED_STREAM: 0x7,
  CANCEL: 0x8,
  COMPRESSION_ERROR: 0x9,
  ENHANCE_YOUR_CALM: 0xb,
} as const;

/** Parameters of SETTINGS (RFC 9113, section 6.5.2). */
export const Setting = {
  HEADER_TABLE_SIZE: 0x1,
  ENABLE_PUSH: 0x2,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
  MAX_HEADER_LIST_SIZE: 0x6,
} as const;

/** What a client sends first (RFC 9113, section 3.4). */
export const CLIENT_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Of each frame, before its payload (RFC 9113, section 4.1). */
export const FRAME_HEADER_BYTES = 9;
/** What SETTINGS_MAX_FRAME_SIZE is by default, and the least it may be. */
export const DEFAULT_MAX_FRAME_SIZE = 16_384;
/** Of a stream and of a connection at first (RFC 9113, section 6.9.2). */
export const DEFAULT_WINDOW_SIZE = 65_535;
/** RFC 9113, section 6.9.1. */
export const MAX_WINDOW_SIZE = 2 ** 31 - 1;
/** RFC 9113, section 5.1.1: the highest stream id; a GOAWAY with it refuses nothing. */
export const MAX_STREAM_ID = 2 ** 31 - 1;
/** Of the dynamic table of HPACK, by SETTINGS_HEADER_TABLE_SIZE. */
export const DEFAULT_HEADER_TABLE_SIZE = 4_096;

/** A violation that ends the whole connection (RFC 9113, section 5.4.1). */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';

  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** A violation of the protocol. */
export function protocolError(message: string): ConnectionError {
  return new ConnectionError(Http2Code.PROTOCOL_ERROR, message);
}

/** A frame whose length its type does not allow. */
export function frameSizeError(): ConnectionError {
  return new ConnectionError(Http2Code.FRAME_SIZE_ERROR, 'a frame of another size');
}

/** More than a window allows. */
export function flowControlError(): ConnectionError {
  return new ConnectionError(Http2Code.FLOW_CONTROL_ERROR, 'more than the window allows');
}
