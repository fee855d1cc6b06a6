import { crc32 } from "node:zlib";

/** A zip file of one uncompressed member (APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16); the same bytes for the same text. */
export function storedZip(name: string, content: Buffer): Buffer {
  const fileName = Buffer.from(name);
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0); // version 2.0 to extract
  common.writeUInt16LE(0x21, 8); // 1 January 1980
  common.writeUInt32LE(crc32(content), 10);
  common.writeUInt32LE(content.length, 14);
  common.writeUInt32LE(content.length, 18);
  common.writeUInt16LE(fileName.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, fileName, content]);
  const madeBy = Buffer.from([20, 0]);
  const directory = Buffer.concat([
    Buffer.from("PK\x01\x02"),
    madeBy,
    common,
    Buffer.alloc(14), // no comment, first disk, no attributes, at offset 0
    fileName,
  ]);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, directory, end]);
}
